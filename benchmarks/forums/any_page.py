"""Cost of `trawl read --batch` for a page, in comparison with its parse: `python -m benchmarks.forums.any_page [--pages FOLDER]`.

Milliseconds of CPU for a page of posts, read without a site file: the software is recognised, its profile reads the posts, and
the rest is learned where those are not complete. Without `--pages` the pages are the fixtures of profiles with 25 rows; with it,
they are the `.html` files of a folder, or the `.json` files with `html` and `url`. *Parse* is `lxml.html.document_fromstring` of
the page's bytes in UTF-8. A round parses and reads each page once, in random order; the ratio is taken within a round,
the garbage collector set as by the command.
"""

from __future__ import annotations

import gc
import random
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from lxml.html import document_fromstring

from benchmarks.forums.reading import page_of, site_of
from benchmarks.forums.saved_pages import Page, saved
from benchmarks.peers.by_hand import READERS
from benchmarks.support.report import Report, options
from benchmarks.support.rounds import Figures, Rounds
from forum_reader.readers.page_reader import read_page
from workers.settings import GC_THRESHOLD

PARSE, READ = "parse", "read"
MOST_TIMES = 8.0  # of the parse, for the median page
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def main() -> None:
    """Run the benchmark and print the report."""
    parser = options(__doc__, rounds=7)
    parser.add_argument("--pages", type=Path, help="folder of saved pages (default: fixtures of profiles)")
    parser.add_argument("--rows", type=int, default=25, help="rows of a fixture's page (default: %(default)s)")
    chosen = parser.parse_args()
    pages = saved(chosen.pages) if chosen.pages else fixtures(chosen.rows)
    for markup, url in pages:
        read_page(markup, url, now=NOW)  # the first page compiles its expressions
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLD)
    played = Rounds.play(chosen.rounds, [PARSE, READ], lambda name: run(name, pages))
    report = Report(title="Reading any page", method=" ".join((__doc__ or "").split("\n\n", 2)[1].split()))
    rows = []
    for name in (PARSE, READ):
        ratio = played.ratio(name, PARSE, ms) if name != PARSE else 1.0
        slowest = statistics.median(one[name]["slowest"] for one in played.played)
        rows.append([name, len(pages), played.median(name, ms), ratio, slowest])
    report.table(["what", "pages", "median page, ms", "÷ parse", "slowest page, ms"], rows)
    ratio = played.ratio(READ, PARSE, ms)
    report.target(f"the median page takes at most {MOST_TIMES:.0f} × its parse: {ratio:.1f}", ratio <= MOST_TIMES)
    report.figures["rounds"] = played.played
    report.finish(chosen)


def run(name: str, pages: list[Page]) -> Figures:
    """Return the median and the slowest of the pages."""
    taken = []
    for markup, url in random.sample(pages, len(pages)):
        body = markup.encode("utf-8", "replace")
        begun = time.process_time()
        if name == PARSE:
            document_fromstring(body)
        else:
            read_page(markup, url, now=NOW, links=False)
        taken.append((time.process_time() - begun) * 1e3)
    return {"ms": statistics.median(taken), "slowest": max(taken)}


def ms(figures: Figures) -> float:
    """Milliseconds for the median page."""
    return float(figures["ms"])


def fixtures(rows: int) -> list[Page]:
    """Return the thread pages of profiles in the other reading benchmark, with so many rows."""
    pages = []
    with tempfile.TemporaryDirectory() as folder:
        for profile, stem in READERS:
            page = page_of(site_of(profile, Path(folder)), profile, stem, rows, 0)
            if not stem.startswith("list") and b"<html" in page.body[:2000]:
                pages.append((page.text, page.url))
    return pages


if __name__ == "__main__":
    main()
