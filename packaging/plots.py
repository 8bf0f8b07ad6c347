"""docs/images/plots/*.svg: results as bars, drawn by `make docs` from the tables of benchmarks/results/ alone.

A picture adapts to a dark page, loads nothing, and is the same, byte by byte, for the same tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks/results"
PLOTS = ROOT / "docs/images/plots"
WIDTH, LABEL, ROW, TOP = 760, 250, 26, 56
ROOM = 90  # for the figure behind a bar
STYLE = (
    ".b{fill:#fff}text{font:14px system-ui,sans-serif;fill:#24292f}.t{font-weight:600}.s{fill:#6e7781;font-size:12px}"
    ".us{fill:#0969da}.they{fill:#afb8c1}"
    "@media(prefers-color-scheme:dark){.b{fill:#0d1117}text{fill:#d0d7de}.s{fill:#8b949e}.us{fill:#58a6ff}.they{fill:#484f58}}"
)
Row = dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Plot:
    """One picture: rows of a table that `keeps` takes, each a bar of the figure in `column`."""

    title: str
    unit: str
    page: str
    column: str
    keeps: Callable[[Row], bool]
    label: Callable[[Row], str]
    is_ours: Callable[[Row], bool] = lambda _: True


PLOTS_OF = {
    "crawl_speed": Plot(
        title="Speed of one crawler, by the distance of Redis",
        unit="pages per second, as a share of plain Scrapy's",
        page="crawl_speed.md",
        column="÷ vanilla",
        keeps=lambda row: "+stats" not in row["variant"],
        label=lambda row: {"vanilla": "plain Scrapy, no Redis"}.get(row["variant"], row["variant"]),
        is_ours=lambda row: row["variant"].startswith("trawl"),
    ),
    "memory": Plot(
        title="Memory of a queued request in Redis",
        unit="bytes",
        page="memory.md",
        column="B per queued request",
        keeps=lambda _: True,
        label=lambda row: row["peer"],
        is_ours=lambda row: row["peer"] == "trawl",
    ),
    "deaths": Plot(
        title="From a death until all crawlers work again, spiders of any project",
        unit="seconds, median",
        page="service_deaths.md",
        column="whole, s (median)",
        keeps=lambda row: row["spider"] == "scrapy.Spider",
        label=lambda row: row["death"],
    ),
    "living": Plot(
        title="A living forum: from an event until it is stored",
        unit="seconds, mean",
        page="living.md",
        column="delay, s: mean",
        keeps=lambda row: row["run"] == "undisturbed" and row["event"] in ("published", "edited", "deleted"),
        label=lambda row: f"{row['event']} ({row['number']})",
    ),
    "scaling": Plot(
        title="More crawlers",
        unit="pages per second",
        page="scaling.md",
        column="pages/s",
        keeps=lambda _: True,
        label=lambda row: f"{row['crawlers']} crawler{'' if row['crawlers'] == '1' else 's'}",
    ),
}


def rows(page: Path, column: str) -> list[Row]:
    """Read the rows of the page's first table with this column. Raises ValueError if there is none."""
    for block in re.findall(r"(?:^\|.*\n)+", page.read_text("utf-8"), re.MULTILINE):
        head, _, *lines = ([cell.strip() for cell in line.strip().strip("|").split("|")] for line in block.splitlines())
        if column in head:
            return [dict(zip(head, line, strict=True)) for line in lines]
    raise ValueError(f"{page.name} has no table with {column!r}")


def drawn(plot: Plot) -> str:
    """Draw the picture as SVG."""
    kept = [row for row in rows(RESULTS / plot.page, plot.column) if plot.keeps(row)]
    figures = [float(row[plot.column].replace(",", "")) for row in kept]
    if not kept:
        raise ValueError(f"{plot.page} has no rows for {plot.title!r}")
    most, height = max(figures), TOP + ROW * len(kept) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(plot.title)}">',
        f"<style>{STYLE}</style>",
        f'<rect class="b" width="{WIDTH}" height="{height}" rx="6"/>',  # a page may be dark where its reader's machine is not
        f'<text class="t" x="10" y="22">{escape(plot.title)}</text>',
        f'<text class="s" x="10" y="42">{escape(plot.unit)}</text>',
        *_bars(plot, kept, figures, most),
        "</svg>\n",
    ]
    return "\n".join(parts)


def _bars(plot: Plot, kept: list[Row], figures: list[float], most: float) -> Iterator[str]:
    for number, (row, figure) in enumerate(zip(kept, figures, strict=True)):
        y, length = TOP + ROW * number, figure / most * (WIDTH - LABEL - ROOM)
        colour = "us" if plot.is_ours(row) else "they"
        yield f'<text x="{LABEL - 10}" y="{y + 15}" text-anchor="end">{escape(plot.label(row))}</text>'
        yield f'<rect class="{colour}" x="{LABEL}" y="{y + 2}" width="{max(length, 1):.0f}" height="{ROW - 9}" rx="2"/>'
        yield f'<text x="{LABEL + max(length, 1) + 8:.0f}" y="{y + 15}">{escape(row[plot.column])}</text>'


def main() -> None:
    """Draw all of them."""
    PLOTS.mkdir(parents=True, exist_ok=True)
    for name, plot in PLOTS_OF.items():
        (PLOTS / f"{name}.svg").write_text(drawn(plot), "utf-8")


if __name__ == "__main__":
    main()
