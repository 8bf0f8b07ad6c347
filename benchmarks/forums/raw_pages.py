"""Cost of judging and storing a page for a crawler, and speed of reading stored pages again:
`python benchmarks/forums/raw_pages.py [--pages 2000]`.

Microseconds of the reactor's thread for each page: the verdict of a page of JSON and of one of HTML, and handing it to the store;
then what the store's own thread takes for it (compression and write), and bytes on disk. Last, items per second of a reparse into
an empty SQLite database, and into one that has all of them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from scrapy import Request
from scrapy.http import HtmlResponse, Response, TextResponse

from forum_reader.page import soft_block
from forums.raw_pages.reparse import reparse
from forums.sites import Site
from forums.sites.load import load_file
from forums.storage import Database
from workers.raw_pages import RawPage, RawStore
from workers.raw_pages.store import size_of

ROOT = Path(__file__).parents[2]
AT = "2026-11-22T10:00:00.000+00:00"
ROWS = 20
WORDS = [
    "the",
    "quick",
    "brown",
    "fox",
    "of",
    "a",
    "forum",
    "jumps",
    "over",
    "what",
    "a",
    "user",
    "wrote",
    "before",
    "it",
    "then",
]


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--pages", type=int, default=2000)
    pages = options.parse_args().pages
    site = load_file(ROOT / "demo" / "sites" / "demo.toml")
    answers = [as_json(number) for number in range(pages)]
    print(f"{pages} pages of {ROWS} comments; a page of JSON has {len(answers[0].body):,} bytes")
    for name, kind, one in (("JSON", "json", answers[0]), ("HTML", "html", as_html())):
        each = median_us(lambda one=one, kind=kind: soft_block.verdict(one, kind))  # type: ignore[misc]
        print(f"verdict, {name} of {len(one.body):,} bytes: {each:.1f} µs")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        keep(folder, answers)
        with Database.from_url(f"sqlite:///{folder / 'benchmark.sqlite'}") as database:
            for what in ("new rows", "rows that are there"):
                read_again(database, folder, site, what)


def keep(folder: Path, answers: list[TextResponse]) -> None:
    """Write into the store, as a crawler does; the time of its thread is measured separately, since the two share the
    interpreter.
    """
    store = RawStore(folder, most_waiting=1 << 40)
    made = [context(number) for number in range(len(answers))]
    begun = time.perf_counter()
    for answer, asked in zip(answers, made, strict=True):
        store.keep(RawPage.of(answer, "demo", asked, AT))
    handed = time.perf_counter() - begun
    store.close(600)
    print(f"handing a page over: {handed / len(answers) * 1e6:.1f} µs, while the store's thread works")
    page = RawPage.of(answers[0], "demo", made[0], AT)
    on_disk = size_of(folder, "demo") / len(answers)
    print(f"a record of it, in the thread: {median_us(page.to_record):.0f} µs; {on_disk:,.0f} bytes on disk")


def read_again(database: Database, folder: Path, site: Site, what: str) -> None:
    begun = time.perf_counter()
    report = reparse(database, folder, site)
    seconds = time.perf_counter() - begun
    print(f"reparse, {what}: {report.items:,} items in {seconds:.1f} s, {report.items / seconds:,.0f} items/s")


def median_us(call: Callable[[], object], rounds: int = 300) -> float:
    """Median time of a call."""
    took = []
    for _ in range(rounds):
        begun = time.perf_counter()
        call()
        took.append(time.perf_counter() - begun)
    return statistics.median(took) * 1e6


def context(number: int) -> dict[str, object]:
    return {"kind": "comments", "forum": "f1", "thread": f"p{number}", "number": 1}


def text(seed: int) -> str:
    return " ".join(WORDS[(seed * 7 + n * (1 + seed % 5)) % len(WORDS)] for n in range(60))


def as_json(number: int) -> TextResponse:
    rows = [{"id": f"p{number}-{n}", "body": text(number + n), "author": f"user{n}", "created_at": AT} for n in range(ROWS)]
    body = json.dumps({"pages": 1, "comments": rows}).encode()
    url = f"http://forum.test/comment/p{number}/1"
    return TextResponse(url, body=body, headers={"Content-Type": "application/json"}, request=Request(url))


def as_html() -> Response:
    posts = "".join(f"<article id=c{n}><h3>user{n}</h3><div class=content><p>{text(n)}</p></div></article>" for n in range(100))
    page = f"<!doctype html><html><head><title>A thread</title></head><body>{posts}</body></html>"
    return HtmlResponse("http://forum.test/t/1", body=page.encode(), request=Request("http://forum.test/t/1"), encoding="utf-8")


if __name__ == "__main__":
    main()
