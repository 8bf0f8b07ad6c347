"""Cost of reading a page by a site file: `python -m benchmarks.forums.reading [--rounds 15] [--pages FOLDER]`.

Milliseconds of the reactor's thread for a page of 15 rows, by a profile, by a callback written by hand for this one board
(`benchmarks/peers/by_hand.py`: parsel for each field of each row, `strptime` with the board's known format, the words of a post
joined by spaces), which reads the same rows and fields, and by the parser alone (lxml's tree, or `json`). HTML is filled up
with scripts and navigation to 86 KB, the median of real thread pages. A round reads eight pages with other ids and times by
each, in random order, the garbage collector set as in a crawler; ratios are taken within a round. *Pages/s* are those that a
whole CPU would read by the profile. *First pages* are the first eight of a process. With `--pages` the same of the thread pages
of real forums in a folder (`.html`, or `.json` with `html` and `url`): the median page of a round.
"""

from __future__ import annotations

import gc
import itertools
import json
import random
import re
import statistics
import tempfile
import time
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

from lxml import etree
from parsel import Selector
from parsel.selector import create_root_node
from scrapy.http import HtmlResponse, TextResponse

from benchmarks.forums import saved_pages
from benchmarks.peers.by_hand import READERS
from benchmarks.support.report import BenchmarkFailed, Report, options
from benchmarks.support.rounds import Figures, Rounds
from forum_reader.definition.pages import RowsPage
from forum_reader.reading.page_values import Document
from forum_reader.reading.read_page import read_comments, read_list
from forums.sites import Site
from forums.sites.load import load_file
from workers.settings import GC_THRESHOLD

FORUMS = Path(__file__).parents[2] / "tests" / "fixtures" / "forums"
DATE = "Sun, 22 Nov 2026 12:00:00 GMT"
HEADERS = {"Content-Type": "text/html; charset=utf-8", "Date": DATE}
OURS, BY_HAND, PARSE = "by the profile", "by hand", "parse"
PAGES = 8
MOST = 1.5
MOST_MS = 3.0
Read = Callable[[Any], Any]


def main() -> None:
    """Run the benchmark and print the report."""
    parser = options(__doc__, rounds=15)
    parser.add_argument("--rows", type=int, default=15, help="rows of a page (default: %(default)s)")
    parser.add_argument("--bytes", type=int, default=86_000, help="least size of a page of HTML (default: %(default)s)")
    parser.add_argument("--pages", type=Path, help="folder of saved pages of real forums, of which threads are read, too")
    chosen = parser.parse_args()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLD)
    report = Report(title="Reading pages", method=" ".join((__doc__ or "").split("\n\n", 2)[1].split()))
    report.caveats += [
        "The pages are of our own making, after the boards' public markup, their rows repeated with other ids and times.",
        "By the profile includes what a callback by hand leaves out: whether the page is a login wall, which page is next, how "
        "often each field was empty, rows that come twice, text with lines as a browser shows them.",
    ]
    rows, html, threads = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for (profile, stem), by_hand in READERS.items():
            site = site_of(profile, Path(folder))
            pages = [filled(page_of(site, profile, stem, chosen.rows, seed), chosen.bytes) for seed in range(PAGES)]
            played, first = compared(reader(site, stem), by_hand, pages, chosen.rounds)
            ratios, ratio = played.ratios(OURS, BY_HAND, ms), played.ratio(OURS, BY_HAND, ms)
            ours = played.median(OURS, ms)
            if isinstance(pages[0], HtmlResponse):
                html.append(ratio)
                threads += [] if stem.startswith("list") else [ours]
            name, each = f"{profile}, {stem.split('-')[0]}", [ours, played.median(BY_HAND, ms), played.median(PARSE, ms)]
            spread = f"{ratios[0]:.2f}-{ratios[-1]:.2f}"
            rows.append([name, len(pages[0].body), *each, ratio, spread, round(1e3 / ours), first])
            report.figures[f"{profile} {stem}"] = played.played
        if chosen.pages:
            rows.append(of_saved(chosen.pages, Path(folder), chosen.rounds, report))
    head = [
        "page",
        "bytes",
        "profile, ms",
        "by hand, ms",
        "parse, ms",
        "profile ÷ by hand",
        "from-to",
        "pages/s",
        "first pages, ms",
    ]
    report.table(head, rows)
    report.target(f"a page of HTML costs at most {MOST:g} × by hand: {max(html):.2f}", max(html) <= MOST)
    median = statistics.median(threads)
    report.target(f"the median thread page of HTML takes at most {MOST_MS:g} ms: {median:.2f}", median <= MOST_MS)
    report.finish(chosen)


def compared(ours: Read, by_hand: Read, pages: list[TextResponse], rounds: int) -> tuple[Rounds, float]:
    """Return the rounds, and the times of the pages when they were the first."""
    first = ms(run(ours, pages))
    if [len(ours(page)) for page in pages] != [len(by_hand(page)) for page in pages]:
        raise BenchmarkFailed("the same rows are to be read by both")
    readers = {OURS: ours, BY_HAND: by_hand, PARSE: parse}
    return Rounds.play(rounds, list(readers), lambda name: run(readers[name], pages)), first


def of_saved(pages: Path, folder: Path, rounds: int, report: Report) -> list[Any]:
    """Return the row of saved pages."""
    readers = {profile: by_hand for (profile, stem), by_hand in READERS.items() if stem.startswith("comments")}
    threads = list(saved_pages.threads(pages, readers, lambda profile: site_of(profile, folder), HEADERS))
    if not threads:
        raise BenchmarkFailed(f"{pages}: has no threads of {', '.join(readers)}")
    reads: dict[str, Callable[[int], Any]] = {
        OURS: lambda at: read_comments(threads[at][0], threads[at][1].copy(), "41", 2),
        BY_HAND: lambda at: threads[at][2](threads[at][1].copy()),
        PARSE: lambda at: parse(threads[at][1].copy()),
    }

    def measured(name: str) -> Figures:
        taken = []
        for at in random.sample(range(len(threads)), len(threads)):
            begun = time.process_time()
            reads[name](at)
            taken.append((time.process_time() - begun) * 1e3)
        return {"ms": statistics.median(taken)}

    measured(OURS)  # the first page compiles its expressions
    played = Rounds.play(rounds, list(reads), measured)
    report.figures["saved pages"] = played.played
    ratios, ours = played.ratios(OURS, BY_HAND, ms), played.median(OURS, ms)
    size = round(statistics.median(len(page.body) for _, page, _ in threads))
    each = [ours, played.median(BY_HAND, ms), played.median(PARSE, ms), played.ratio(OURS, BY_HAND, ms)]
    return [f"{len(threads)} saved threads", size, *each, f"{ratios[0]:.2f}-{ratios[-1]:.2f}", round(1e3 / ours), ""]


def parse(page: TextResponse) -> Any:
    """Parse the page's tree alone."""
    return create_root_node(page.text, etree.HTMLParser) if isinstance(page, HtmlResponse) else json.loads(page.body)


def filled(page: TextResponse, size: int) -> TextResponse:
    """Fill a page of HTML with scripts and navigation, half of each, to so many bytes. As in real pages, there is an element
    for each
    75 bytes, too.
    """
    missing = size - len(page.body)
    if missing <= 0 or not isinstance(page, HtmlResponse):
        return page
    script = "var settings = {page: 1, words: 'some text of a script'};\n" * (missing // 112)
    links = (f'<li><a class="nav-link" href="/boards/board-{n}.{n}/">Board number {n}</a></li>\n' for n in range(missing))
    taken = itertools.takewhile(lambda total: total[1] < missing // 2, zip(links, itertools.count(0, 76), strict=False))
    menu = "".join(link for link, _ in taken)
    before, end, after = page.text.rpartition("</body>")
    whole = f"{before}<ul class='nav'>{menu}</ul><script>{script}</script>{end}{after}"
    return page.replace(body=whole.encode(page.encoding))


def run(read: Read, pages: list[TextResponse]) -> Figures:
    """Time the reading of each of `pages`, copied first, because Scrapy caches a response's tree."""
    fresh = [page.copy() for page in pages]
    begun = time.process_time()
    for page in fresh:
        read(page)
    return {"ms": (time.process_time() - begun) / len(pages) * 1e3}


def ms(figures: Figures) -> float:
    """Milliseconds for a page."""
    return float(figures["ms"])


def reader(site: Site, stem: str) -> Read:
    """Return a reader of pages by the profile."""
    if stem.startswith("list"):
        return lambda page: read_list(site, page, "2").threads
    return lambda page: read_comments(site, page, "41", 2).comments


def site_of(profile: str, folder: Path) -> Site:
    """Return a site with its profile alone."""
    file = folder / f"{profile}.toml"
    file.write_text(f'profile = "{profile}"\nbase_url = "https://forum.example"\nforums = ["2"]\n', encoding="utf-8")
    return load_file(file)


def page_of(site: Site, profile: str, stem: str, rows: int, seed: int) -> TextResponse:
    """Return the fixture page with so many rows; another seed gives other ids and times."""
    file = next(path for path in (FORUMS / profile).iterdir() if path.stem == stem)
    kind: Any = "list" if stem.startswith("list") else "comments"
    is_json = file.suffix == ".json"
    headers = {"Content-Type": "application/json" if is_json else "text/html", "Date": DATE}
    page = (TextResponse if is_json else HtmlResponse)(
        site.url(kind, forum="2", thread="41"), body=file.read_bytes(), headers=headers
    )
    changes = random.Random(seed)
    body = _json(site, kind, page, rows, changes) if is_json else _html(site, kind, page, rows, changes)
    return page.replace(body=body)


def _html(site: Site, kind: Any, page: TextResponse, rows: int, changes: random.Random) -> bytes:
    root = Selector(text=page.text, type="html").root
    doc = Document(site, site.page(kind), page)
    doc.root = root
    spec = site.page_of(kind, RowsPage)
    found = doc.rows(spec)
    parent = found[-1].getparent()
    for around in {row.getparent() for row in found}:
        around[:] = []
    for number, row in zip(range(rows), itertools.cycle(found), strict=False):
        known = doc.peek(spec.fields.id, row) or ""  # type: ignore[attr-defined]
        copy = deepcopy(row)
        for element in copy.iter(etree.Element):
            for name, value in element.attrib.items():
                element.set(name, _changed(value, known, number, changes))
            element.text, element.tail = (text and _times(text, changes) for text in (element.text, element.tail))
        parent.append(copy)
    return bytes(etree.tostring(root, encoding=page.encoding, method="html", doctype="<!doctype html>"))


def _json(site: Site, kind: Any, page: TextResponse, rows: int, changes: random.Random) -> bytes:
    spec = site.page_of(kind, RowsPage)
    doc = Document(site, spec, page)
    found = doc.rows(spec)
    ids = [doc.peek(spec.fields.id, row) or "" for row in found]  # type: ignore[attr-defined]
    grown = [
        json.loads(_changed(json.dumps(found[number % len(found)]), ids[number % len(found)], number, changes))
        for number in range(rows)
    ]
    (at,) = spec.rows.select
    *tables, last = at.split(".")
    table = doc.root
    for name in tables:
        table = table[name]
    table[last] = grown
    return json.dumps(doc.root).encode()


def _changed(text: str, known: str, number: int, changes: random.Random) -> str:
    """With another id in place of `known`, and other times."""
    if known:
        text = re.sub(rf"(?<![\d:])(?<!\d-){re.escape(known)}(?![\d:])(?!-\d)", str(900_000 + number), text)
    return _times(text, changes)


def _times(text: str, changes: random.Random) -> str:
    return re.sub(r"\b(\d\d?):(\d\d)\b(?! *[+-]\d)", lambda time: f"{time[1]}:{changes.randrange(60):02}", text)


if __name__ == "__main__":
    main()
