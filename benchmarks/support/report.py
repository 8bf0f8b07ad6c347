"""Report of a benchmark: a Markdown page with its table, the machine, the command and the caveats; and JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import redis

from redis_components.errors import TrawlError


class BenchmarkFailed(TrawlError):
    """A measured process failed; the message holds its output."""


def options(doc: str | None, *, rounds: int | None = None) -> argparse.ArgumentParser:
    """Build a parser with the options of every benchmark."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if rounds is not None:
        parser.add_argument("--rounds", type=int, default=rounds, help="interleaved rounds (default: %(default)s)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write every figure as JSON")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write what is printed as a Markdown page too")
    return parser


@dataclass(kw_only=True)
class Report:
    """Report, filled while a benchmark runs, and printed at its end."""

    title: str
    method: str
    server: str = ""
    caveats: list[str] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    targets: list[tuple[str, bool]] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    begun: datetime = field(default_factory=lambda: datetime.now(UTC))
    load: float = field(default_factory=lambda: os.getloadavg()[0])

    def served_by(self, client: redis.Redis) -> None:
        """Remember which server was measured."""
        info = client.info("server")
        valkey = info.get("valkey_version")
        self.server = f"Valkey {valkey}" if valkey else f"Redis {info['redis_version']}"

    def table(self, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Add a table; the first column is text, numbers are shown with what is significant of them."""
        self.tables.append(table(head, rows))
        self.figures.setdefault("tables", []).append([dict(zip(head, row, strict=True)) for row in rows])

    def target(self, text: str, reached: bool) -> None:
        """Add an aim and whether it is reached."""
        self.targets.append((text, reached))

    def machine(self) -> str:
        """One line: cores, load at the start, versions."""
        parts = [f"{os.cpu_count()} cores (load {self.load:.1f} at the start)", f"Python {platform.python_version()}"]
        parts += [f"Scrapy {version('scrapy')}", *([self.server] if self.server else [])]
        return ", ".join(parts)

    def markdown(self) -> str:
        """Return the page in Markdown."""
        took = (datetime.now(UTC) - self.begun).total_seconds()
        facts = [
            f"- Made by: `{_command()}` in {took / 60:.1f} minutes, {self.begun:%Y-%m-%d}",
            f"- Machine: {self.machine()}",
            *(f"- Target: {text}: {'reached' if reached else '**not reached**'}" for text, reached in self.targets),
        ]
        caveats = ["Caveats:\n\n" + "\n".join(f"- {caveat}" for caveat in self.caveats)] if self.caveats else []
        return "\n\n".join([f"# {self.title}", self.method, "\n".join(facts), *self.tables, *caveats]) + "\n"

    def finish(self, chosen: argparse.Namespace) -> None:
        """Print the page; write it and the figures to the files of the options."""
        page = self.markdown()
        print(page)
        if chosen.page:
            chosen.page.write_text(page, encoding="utf-8")
        if chosen.out:
            facts = {"title": self.title, "command": _command(), "date": f"{self.begun:%Y-%m-%d}", "machine": self.machine()}
            targets = [{"target": text, "reached": reached} for text, reached in self.targets]
            chosen.out.write_text(json.dumps({**facts, "targets": targets, **self.figures}, indent=1) + "\n", encoding="utf-8")


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *([_cell(value) for value in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def section(page: Path, heading: str) -> str:
    """Return the last section of a page, which another benchmark has written; "" where there is none."""
    _, found, text = page.read_text("utf-8").partition(f"\n## {heading}\n") if page.is_file() else ("", "", "")
    return found + text


def write_section(page: Path, heading: str, text: str) -> None:
    """Write the last section of another benchmark's page again."""
    before = page.read_text("utf-8").removesuffix(section(page, heading)) if page.is_file() else ""
    page.write_text(f"{before.rstrip()}\n\n## {heading}\n\n{text}\n" if text else before, encoding="utf-8")


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _command() -> str:
    """Return the command of this run without the paths of its results, which are of this machine."""
    places = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    places.add_argument("--out")
    places.add_argument("--page")
    _, arguments = places.parse_known_args()
    script = Path(sys.argv[0])
    folder = f"{script.parent.name}." if script.parent.parent.name == "benchmarks" else ""
    return " ".join(["python -m", f"benchmarks.{folder}{script.stem}", *map(shlex.quote, arguments)])
