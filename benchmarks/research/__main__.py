"""Experiments behind docs/research: `python -m benchmarks.research [--only NAME ...] [--small] [--no-pages]`.

Each experiment writes its figures into the marked part of docs/research/NAME.md; the text around them is written by hand.
`--small` runs the shortest form, which shows that a script works and nothing about its figures: it writes no page.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from benchmarks.support.report import Report

PAGES = Path(__file__).parents[2] / "docs" / "research"
NAMES = ("articles", "iteration", "expiry", "metrics", "unstorable", "serializer", "depth")
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def main() -> int:
    """Run the chosen experiments, one after the other; write their figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.research", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, help="these alone")
    parser.add_argument("--small", action="store_true", help="the shortest form; writes no page")
    parser.add_argument("--no-pages", action="store_true", help="print the figures, write no page")
    chosen = parser.parse_args()
    for name in chosen.only:
        report: Report = importlib.import_module(f"benchmarks.research.{name}").run(small=chosen.small)
        figures = figures_of(report, name)
        sys.stdout.write(f"## {name}\n\n{figures}\n\n")
        sys.stdout.flush()
        if not (chosen.small or chosen.no_pages):
            place(PAGES / f"{name}.md", figures)
    return 0


def figures_of(report: Report, name: str) -> str:
    """Return the tables of a report in Markdown, with the command and the machine that made them."""
    made = f"Made by `make research ONLY={name}` on {report.begun:%Y-%m-%d}; {report.machine()}."
    return "\n\n".join([made, *report.tables, *(f"- {caveat}" for caveat in report.caveats)])


def place(page: Path, figures: str) -> None:
    """Put the figures between the two marks of a page."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{page}: has no line {BEGIN} with a line {END} below it")
    page.write_text(f"{before}{BEGIN}\n\n{figures}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
