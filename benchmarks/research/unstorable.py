"""Requests that cannot be stored, or carry state: what becomes of each kind, and what storing it costs.

Each row is a request whose `meta`, callback or body holds one thing. Trawl's exact codec encodes and decodes it; beside it stands
scrapy-redis's way, `pickle.dumps(request.to_dict(spider=spider), protocol=-1)`. `shared` means that another crawler gets the same
request; `kept` that this crawler keeps it in memory and its page is crawled again after a death; `differs` that another crawler
gets something else; `lost` that scrapy-redis's scheduler raises, logs it and drops the request.
"""

from __future__ import annotations

import pickle
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import scrapy
from scrapy import Request, Spider
from scrapy.http import HtmlResponse
from scrapy.selector import Selector
from scrapy.utils.request import request_from_dict

from benchmarks.support.report import Report
from redis_components.codec.requests import request_codec
from redis_components.errors import Unserializable


class Product(scrapy.Item):  # type: ignore[misc]
    """A half-filled item, which the next page completes."""

    name = scrapy.Field()


@dataclass
class Place:
    """A dataclass of the project."""

    name: str


class BooksSpider(Spider):
    """The spider whose requests are stored."""

    name = "books"

    def parse(self, response: Any) -> None:
        """Parse any page."""


def kinds(spider: BooksSpider) -> dict[str, Callable[[], Request]]:
    """Return a maker of a request of each kind."""

    def with_meta(value: object) -> Callable[[], Request]:
        return lambda: Request("https://books.example/1", callback=spider.parse, meta={"x": value})

    page = HtmlResponse("https://books.example/", body=b"<p>text</p>" * 200, encoding="utf-8")
    return {
        "nothing": lambda: Request("https://books.example/1", callback=spider.parse),
        "text and numbers": with_meta({"name": "book", "price": 1.5}),
        "a tuple, a set, a date": with_meta([(1, 2), {3}, datetime(2026, 1, 2, tzinfo=UTC)]),
        "a scrapy.Item": with_meta(Product(name="book")),
        "a dataclass of the project": with_meta(Place("shop")),
        "a response": with_meta(page),
        "a selector": with_meta(page.css("p")[0]),
        "a generator": with_meta(n for n in range(3)),
        "an open file": with_meta(sys.__stderr__),
        "a lock": with_meta(threading.Lock()),
        "a function": with_meta(kinds),
        "a lambda as callback": lambda: Request("https://books.example/1", callback=lambda response: None),
    }


def run(*, small: bool) -> Report:
    """Encode and decode each kind. The small form repeats less."""
    report = Report(title="Unstorable", method=" ".join((__doc__ or "").split("\n\n", 1)[1].split()))
    spider, times = BooksSpider(), 20 if small else 3000
    codec = request_codec(spider, None)

    def ours(request: Request) -> bytes:
        return codec.encode(request)

    def theirs(request: Request) -> bytes:
        return pickle.dumps(request.to_dict(spider=spider), protocol=-1)

    def read_theirs(payload: bytes) -> Request:
        return request_from_dict(pickle.loads(payload), spider=spider)  # noqa: S301 - of this process

    rows = []
    for name, make in kinds(spider).items():
        request = make()
        row = (*outcome(request, ours, codec.decode, "kept", times), *outcome(request, theirs, read_theirs, "lost", times))
        rows.append([name, *row])
    report.table(["the request holds", "Trawl", "bytes", "µs", "scrapy-redis", "bytes ", "µs "], rows)
    return report


def outcome(
    request: Request, write: Callable[[Request], bytes], read: Callable[[bytes], Request], refused: str, times: int
) -> tuple[object, object, object]:
    """Return what becomes of a request, the bytes of its payload, and µs for writing and reading it once."""
    try:
        payload = write(request)
        again = read(payload)
    except Exception as error:  # each way has errors of its own
        return refused, "", f"{type(error).__name__}" if not isinstance(error, Unserializable) else ""
    begun = time.process_time()
    for _ in range(times):
        read(write(request))
    spent = (time.process_time() - begun) / times * 1e6
    same = same_value(again.meta.get("x"), request.meta.get("x"))
    return "shared" if same else "differs", len(payload), round(spent)


def same_value(one: object, other: object) -> bool:
    """Return True if both are equal, or are responses or selectors of the same text."""
    if isinstance(one, HtmlResponse) and isinstance(other, HtmlResponse):
        return one.text == other.text
    if isinstance(one, Selector) and isinstance(other, Selector):
        return bool(one.get() == other.get())
    return type(one) is type(other) and one == other


if __name__ == "__main__":
    raise SystemExit("python -m benchmarks.research --only unstorable")
