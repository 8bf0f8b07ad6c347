"""benchmarks/results/containers.md, from what was measured."""

from __future__ import annotations

import json
import platform
import textwrap
import time
from dataclasses import dataclass
from typing import Any

from .engine import EXPORTER_IMAGE, IMAGES, docker

HEALTH = ("beat-1", "beat-2", "exporter-1")


@dataclass(kw_only=True)
class Row:
    """One measurement."""

    kind: str
    """up, compared, panels, fault, rest, swarm or readme."""
    name: str
    seconds: float = 0.0
    pages: int = 0
    """Pages that the forum served since the fault began."""
    reduced_s: float = 0.0
    """With fewer crawlers than wanted."""
    without_s: float = 0.0
    """Without any crawler."""
    crowded_s: float | None = None
    """With more than one crawler process in a slot; None: nobody looked."""
    said: str = ""
    compared: str = ""
    """Rows in the database against what the forum shows, after the fault."""
    failed: bool = False


def comparison(kind: str, name: str, found: str) -> Row:
    """What `python -m demo.compare --json` printed, as a row."""
    last = json.loads(found.splitlines()[-1])
    tables: dict[str, dict[str, Any]] = last["tables"]
    told = (f"{one['expected']} {name} shown, {one['missing']} lost, {one['duplicates']} twice" for name, one in tables.items())
    bad = not all(one["complete"] for one in tables.values())
    return Row(kind=kind, name=name, seconds=last["seconds"], said="; ".join(told), failed=bad, compared=_in_short(tables, bad))


def _in_short(tables: dict[str, dict[str, Any]], bad: bool) -> str:
    shown, lost, twice = (sum(one[what] for one in tables.values()) for what in ("expected", "missing", "duplicates"))
    unlike = "; ".join(f"{name} {' '.join(ids)}" for one in tables.values() for name, ids in one["unlike"].items())
    return f"{lost} lost, {twice} twice of {shown}{f'; not complete: {unlike}' if bad else ''}"


def size_mb(image: str = "trawl:latest") -> int:
    """Size of an image with its base, MB."""
    return round(int(docker("image", "inspect", "-f", "{{.Size}}", image)) / 1e6)


def page(rows: list[Row]) -> str:
    """The whole page."""
    kinds = ("up", "compared", "panels", "fault", "rest", "swarm", "readme")
    of = {kind: [row for row in rows if row.kind == kind] for kind in kinds}
    parts = (
        _head(of["up"], of["compared"] + of["panels"]),
        _readme(of["readme"]),
        _faults(of["fault"]),
        _swarm(of["swarm"]),
        _rest(of["rest"]),
    )
    return "\n".join(_wrapped(line) for part in parts for line in part)


def _wrapped(line: str) -> str:
    return line if line.startswith("|") else textwrap.fill(line, 120, subsequent_indent="  " * line.startswith("- "))


def _head(up: list[Row], compared: list[Row]) -> list[str]:
    versions = docker("version", "-f", "{{.Server.Version}}").strip()
    size, base = size_mb(), size_mb(IMAGES[0])
    return [
        "# The fleet in containers",
        "",
        f"Docker {versions} and `docker compose --profile demo up` of this tree on one machine of 2 cores that other programs",
        "use, too; with two containers each of `worker-list` and `worker-detail`. At the end the forum is frozen, and the",
        "database is compared with what the forum shows.",
        "",
        f"- Made by: `make test-containers`, {time.strftime('%Y-%m-%d')}, Linux {platform.release()}",
        f"- Image: {size} MB, of which the base {base} MB; of the exporter alone {size_mb(EXPORTER_IMAGE)} MB",
        f"- Target: at most 250 MB: {'reached' if size <= 250 else 'not reached'}",
        *(f"- From `up` to a whole fleet, {row.name}: {row.seconds:.0f} s" for row in up),
        *(f"- {row.name[0].upper()}{row.name[1:]}: {row.said}" for row in compared),
        "",
    ]


def _readme(rows: list[Row]) -> list[str]:
    if not rows:
        return []
    return [
        "## The commands of README.md",
        "",
        "As printed, in a fresh clone, by `python -m tests.containers.readme`; then what an operator does next. A command that",
        "warns counts as failed.",
        "",
        "| command | took, s | seen |",
        "|---|---|---|",
        *(f"| {row.name} | {row.seconds:.0f} | {row.said} |" for row in rows),
        "",
    ]


def _faults(rows: list[Row]) -> list[str]:
    return [
        "## Faults under load",
        "",
        "Whole again: seconds from the end of the fault until every container is healthy and every slot has a crawler that runs.",
        "Fewer, none, two: seconds with fewer crawlers than wanted, without any, and with more than one process in a slot, from",
        "the begin of the fault until then, by the machine's /proc, ten looks a second. Pages: that the forum served meanwhile.",
        "Health is asked for every 5 s there, since this engine knows no `start_interval`.",
        "",
        "After each fault the forum is frozen; when its boards were scanned and nothing waits, the database is compared with",
        "what the forum shows. No thread is read again for that: it would heal what the fault lost.",
        "",
        "| fault | whole again, s | fewer, s | none, s | two, s | pages | rows | seen |",
        "|---|---|---|---|---|---|---|---|",
        *(
            f"| {row.name} | {f'{row.seconds:.1f}' if row.seconds else 'not within 240'} | {row.reduced_s:.0f} "
            f"| {row.without_s:.0f} | {_seconds(row.crowded_s)} | {row.pages} | {row.compared or 'not compared'} | {row.said} |"
            for row in rows
        ),
        "",
    ]


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _swarm(rows: list[Row]) -> list[str]:
    if not rows:
        return []
    return [
        "## Swarm",
        "",
        "Three engines, each in a network namespace with an address of its own, `deploy/stack.yml` from a registry. The kernel",
        "has no IP_VS: services are found by `endpoint_mode: dnsrr`. Made by `python -m tests.containers.swarm`.",
        "",
        "| step | took, s | fewer, s | none, s | two, s | pages | rows | seen |",
        "|---|---|---|---|---|---|---|---|",
        *(
            f"| {row.name} | {row.seconds:.0f} | {row.reduced_s:.0f} | {row.without_s:.0f} "
            f"| {_seconds(row.crowded_s)} | {row.pages} | {row.compared} | {row.said} |"
            for row in rows
        ),
        "",
    ]


def _rest(rows: list[Row]) -> list[str]:
    if not rows:
        return []
    shares = {row.name: dict(json.loads(row.said)) for row in rows}
    names = sorted({name for one in shares.values() for name in one if not name.startswith(("forum", "prometheus"))})
    lines = [
        "## At rest",
        "",
        "Share of a core in 60 s while the forum stands still, health checks included, and without the `trawl status --watch` of",
        "the test, %:",
        "",
        f"| container | {' | '.join(shares)} |",
        f"|---|{'---|' * len(shares)}",
        *(f"| {name} | {' | '.join(str(one.get(name, '')) for one in shares.values())} |" for name in names),
    ]
    sums = [sum(one.get(name, 0.0) for name in names) for one in shares.values()]
    health = [sum(one.get(name, 0.0) for name in HEALTH) for one in shares.values()]
    lines += [
        f"| all {len(names)} | {' | '.join(f'{each:.1f}' for each in sums)} |",
        "",
        f"- Target: beats and exporter with their health checks at most 2 %: {max(health):.1f} %: "
        f"{'reached' if max(health) <= 2 else 'not reached'}",
        f"- Target: a fleet at rest at most 10 %: {sums[-1]:.1f} %: {'reached' if sums[-1] <= 10 else 'not reached'}",
        "",
    ]
    return lines
