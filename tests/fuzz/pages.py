"""Targets that read pages: by the profiles, by structure, by what `trawl sites new` asks, as robots.txt, and their dates."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from hypothesis import strategies as st
from protego import Protego
from scrapy.http import Headers, HtmlResponse, TextResponse, XmlResponse

from forum_reader.dates.read_date import DateReader
from forum_reader.definition.load import profile_names
from forum_reader.definition.pages import PageKind
from forum_reader.draft.page_sample import opened
from forum_reader.errors import NotAPage, PageTooLarge
from forum_reader.page.soft_block import verdict
from forum_reader.readers.page_reader import read_page
from forum_reader.reading.page_records import Asked
from forum_reader.recognise.recognise import recognise
from forums.sites import Site, SiteError, UnreadablePage, isolated
from forums.sites.isolated import TooMuchHere
from forums.sites.load import load_file
from redis_components.politeness.limits import retry_after_s
from redis_components.scrapy_glue.retry_after import used_up_s
from redis_components.scrapy_glue.robots import rate_of, readable
from tests.attacks.test_reading_fuzzed import BODIES, HTML, JSON, OPENINGS
from tests.fuzz.target import Target

URL = "http://forum.example/t/1"
NOW = datetime(2026, 11, 22, tzinfo=UTC)
LANGUAGES = (
    None,
    "en",
    "de",
    "fr",
    "es",
    "ru",
    "pl",
    "zh",
    "ja",
    "ko",
    "ar",
    "fa",
    "th",
    "tr",
    "pt",
    "it",
    "nl",
    "he",
    "vi",
    "sv",
)
KINDS: tuple[PageKind, ...] = ("list", "comments", "thread", "index", "recent")
DATES = (
    "2 hours ago", "yesterday, 14:02", "21. November 2026", "Mar 3, 2026 09:11 pm", "3天前", "令和8年3月4日", "5 mar um 3 uhr",
    "2026-11-22T10:00:00+01:00", "1790000000", "Fri, 05 Mar 2026 10:00:00 GMT", "١٢ مارس ٢٠٢٦", "04-03-2023", "31 Dec 9999 -1200",
    "12 Δεκ 2025", "昨天 23:59", "vor 3 Tagen", "1e9", "-1", "２０２６年３月４日", "4 มี.ค. 2569",
)  # fmt: skip


@cache
def _sites() -> tuple[Site, ...]:
    folder = Path(mkdtemp(prefix="trawl-fuzz-"))
    found = []
    for name in profile_names():
        file = folder / f"{name}.toml"
        file.write_text(f'profile = "{name}"\nbase_url = "http://forum.example"\nforums = ["2"]\n')
        try:
            found.append(load_file(file))
        except SiteError:  # a profile to be completed, as `generic`
            continue
    return tuple(found)


@cache
def _readers(syntax: str) -> tuple[tuple[Site, PageKind], ...]:
    pairs = ((site, kind) for site in _sites() for kind in KINDS if getattr(site.pages, kind, None) is not None)
    return tuple((site, kind) for site, kind in pairs if site.page(kind).format == syntax)


def _by_a_profile(syntax: str, kind_of: type[TextResponse]) -> Callable[[bytes], None]:
    """Its first two bytes choose site and kind of page; the rest is the page."""

    def read(raw: bytes) -> None:
        readers = _readers(syntax)
        site, kind = readers[int.from_bytes(raw[:2], "big") % len(readers)]
        response = kind_of(URL, body=raw[2:], encoding="utf-8")
        try:
            isolated.here(site, response, Asked(kind=kind, forum="2", thread="1", number=2))
        except (UnreadablePage, TooMuchHere):
            return

    return read


def _by_structure(raw: bytes) -> None:
    try:
        read_page(raw.decode("utf-8", "replace"), URL, now=NOW, profiles=False)
    except (NotAPage, PageTooLarge):
        return


def _looked_at(raw: bytes) -> None:
    """What a look at an unknown site asks of each page."""
    response = HtmlResponse(URL, body=raw, encoding="utf-8")
    verdict(response)
    recognise(response)
    if (page := opened(response)) is not None:
        assert page.text_size >= 0


def _date(raw: bytes) -> None:
    language = LANGUAGES[raw[0] % len(LANGUAGES)] if raw else None
    found, _ = DateReader(NOW, language=language, time_zone="Europe/Berlin").read(raw[1:].decode("utf-8", "replace"))
    assert found is None or found.tzinfo is UTC


def _robots(raw: bytes) -> None:
    rules = Protego.parse(readable(raw).decode("utf-8", "ignore"))
    rules.can_fetch(URL, "trawl")
    said = rules.request_rate("trawl")
    rate = rate_of(rules.crawl_delay("trawl"), *((said.requests, said.seconds) if said else ()))
    assert rate is None or rate > 0


def _headers(raw: bytes) -> None:
    """Lines of a response's head, as a server may write them."""
    headers = Headers()
    for line in raw.split(b"\n")[:100]:
        name, _, value = line.partition(b":")
        headers.appendlist(name, value.strip())
    for wait in (used_up_s(headers, 1.0), retry_after_s((headers.get("Retry-After") or b"").decode("latin-1"))):
        assert wait is None or 0 <= wait <= 1e9
    verdict(TextResponse(URL, status=429, headers=headers, body=b"x", encoding="utf-8"))


def _markup(page: tuple[str, list[tuple[list[str], int]]]) -> bytes:
    body, parts = page
    made = ("".join(pieces).replace("{0}", str(n)) for pieces, many in parts for n in range(min(many, 20)))
    return (body + "".join(made)).encode("utf-8", "replace")[:8000]


def _json(value: Any) -> bytes:
    return json.dumps({"topic_list": {"topics": [value]}, "post_stream": {"posts": [value]}, "comments": [value]}).encode()


CHOICE = st.binary(min_size=2, max_size=2)
MARKUP = HTML.map(_markup)
ENTRY = "<entry><id>t:1</id><title>a</title><updated>2026-03-04T05:06:07Z</updated><content>&lt;p&gt;x</content></entry>"
FEED = st.integers(0, 5).map(
    lambda many: ("<?xml version='1.0'?><feed xmlns='http://www.w3.org/2005/Atom'>" + ENTRY * many + "</feed>").encode()
)
RULES = st.lists(
    st.sampled_from(
        ("User-agent: *", "User-agent: trawl", "Disallow: /", "Allow: /*a*b$", "Crawl-delay: 1e9", "Request-rate: 1/0", "\x00")
    )
    | st.text(max_size=30),
    max_size=20,
).map(lambda lines: "\n".join(lines).encode("utf-8", "replace"))
HEADS = st.lists(
    st.sampled_from(
        ("Retry-After: 120", "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT", "RateLimit: limit=1, remaining=0, reset=99")
    )
    | st.sampled_from(("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1e400", 'RateLimit: "b";r=0;t=5', "Retry-After: -1"))
    | st.text(max_size=30),
    max_size=6,
).map(lambda lines: "\n".join(lines).encode("utf-8", "replace"))
WORDS = (*(one for one in OPENINGS if one.isprintable()), *BODIES)


def _dates() -> Target:
    first = st.tuples(st.binary(min_size=1, max_size=1), st.sampled_from(DATES)).map(lambda one: one[0] + one[1].encode())
    return Target(name="date", read=_date, first=first, words=DATES)


ROBOTS = Target(
    name="robots.txt", read=_robots, first=RULES, words=("User-agent: *", "Crawl-delay: ", "Request-rate: 1/2", "Disallow: ")
)
HEADERS = Target(
    name="response headers", read=_headers, first=HEADS, words=("Retry-After: ", "RateLimit: ", "X-RateLimit-Reset: ", ";r=0;t=")
)
TARGETS: dict[str, Callable[[], Target]] = {
    "page-html": lambda: Target(
        name="page-html",
        read=_by_a_profile("html", HtmlResponse),
        first=st.tuples(CHOICE, MARKUP).map(b"".join),
        words=WORDS,
    ),
    "page-json": lambda: Target(
        name="page-json", read=_by_a_profile("json", TextResponse), first=st.tuples(CHOICE, JSON.map(_json)).map(b"".join)
    ),
    "page-xml": lambda: Target(
        name="page-xml", read=_by_a_profile("xml", XmlResponse), first=st.tuples(CHOICE, FEED).map(b"".join)
    ),
    "page-of-any-forum": lambda: Target(name="page-of-any-forum", read=_by_structure, first=MARKUP, words=WORDS),
    "page-of-sites-new": lambda: Target(name="page-of-sites-new", read=_looked_at, first=MARKUP, words=WORDS),
    "date": _dates,
}
