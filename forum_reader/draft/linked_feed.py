"""Feed that a forum's pages link, as the page of its newest messages in a site file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urljoin, urlsplit

from forum_reader.definition.origins import place_of
from forum_reader.errors import FetchFailed, UnreadablePage
from forum_reader.reading.parse_body import markup_root, xml_of

if TYPE_CHECKING:
    from forum_reader.page.response import Get, TextResponse

    from .explore import FoundForum

MOST_FEEDS = 3
"""Number of feeds that are tried."""
LEAST = 0.6
"""Share of a feed's entries that must lead to threads."""
_TYPES = ("application/rss+xml", "application/atom+xml", "application/rdf+xml")
_LINKS = "//link[contains(concat(' ', @rel, ' '), ' alternate ')][@href]"
_ADDRESS = ["./link[not(@rel) or @rel = 'alternate']/@href", "./link", "./guid", "./id"]
_GROUP = re.compile(r"(?<!\\)\((?!\?)")
_DATE = ["./updated", "./pubDate", "./date", "./published"]
_IN_QUERY = re.compile(r"[?&](\w+)=\{thread\}")
_IN_PATH = re.compile(r"/([\w-]+)/\{thread\}")
_COUNTS, _POSTS = 2, 3
_COUNT = "./comments[number(.) = number(.)]"  # of `slash:comments`; another element of this name holds an address


async def recent_page(get: Get, found: FoundForum, pages: dict[str, Any]) -> dict[str, Any] | None:
    """Return the table `[pages.recent]` of a forum with these pages, where one of its pages links a feed of its threads."""
    field, comments = pages["list"]["fields"].get("id"), pages["comments"]["url"]
    pattern = field.get("regex") if isinstance(field, dict) else None
    if pattern is None or "{forum" in comments:  # a feed does not name a thread's forum
        return None
    page = found.forums.page if found.forums is not None else found.listed.page
    table = await _of_feeds(get, page.response, pattern)
    if table is not None and "{url}" in comments:
        table["fields"]["url"] = _thread_url(pattern, found.listed.urls)
    return table


async def recent_of_profile(get: Get, profile: dict[str, Any], base_url: str, response: TextResponse) -> dict[str, Any] | None:
    """Return the table `[pages.recent]` for software whose profile has none, where the page links a feed of its threads."""
    pages = profile.get("pages", {})
    pattern = None if "recent" in pages else _thread_pattern(pages)
    table = await _of_feeds(get, response, pattern) if pattern is not None else None
    if table is not None and (below := urlsplit(base_url).path.rstrip("/")):
        is_below = table["url"].startswith(f"{below}/")
        table["url"] = table["url"].removeprefix(below) if is_below else urljoin(base_url, "/").rstrip("/") + table["url"]
    return table


def _thread_pattern(pages: dict[str, Any]) -> str | None:
    """Return an expression of a thread's id in its addresses: the list's, where it reads addresses, else one made from the
    profile's address of threads. None where a thread's pages need more than its id.
    """
    comments, field = pages.get("comments", {}), pages.get("list", {}).get("fields", {}).get("id")
    url = comments.get("url", "")
    if comments.get("format", "html") != "html" or "{forum" in url or "{url" in url:
        return None
    if isinstance(field, dict) and field.get("regex") and "href" in str(field.get("select")):
        return str(field["regex"])
    if (query := _IN_QUERY.search(url)) is not None:
        return rf"[?&]{query[1]}=(\d+)"
    path = _IN_PATH.search(url)
    return rf"/{path[1]}/(?:[^/?#]*\.)?(\d+)(?=[-./?#]|$)" if path is not None else None


async def _of_feeds(get: Get, response: TextResponse, pattern: str) -> dict[str, Any] | None:
    graded = [(grade, url) for url in _feeds(response)[:MOST_FEEDS] if (grade := await _grade(get, url, pattern))]
    if not graded:
        return None
    best, url = max(graded, key=lambda one: one[0])
    parts = urlsplit(url)
    address = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    changes = {"reply_count": _COUNT} if best == _COUNTS else {"created_at": _DATE}
    fields: dict[str, Any] = {"thread": {"select": _ADDRESS, "regex": pattern}} | changes
    return {"url": address.replace("{", "%7B"), "format": "xml", "rows": "//item | //entry", "fields": fields}


def _thread_url(pattern: str, urls: list[str]) -> Any:
    """Return the field of the thread's address, where it is the beginning of a post's: `/how-to-prune/` of
    `/how-to-prune/comment-page-2/#comment-7`.
    """
    matches = [(url, re.search(pattern, url)) for url in map(unquote, urls)]
    endings = {url[match.end() :] for url, match in matches if match}
    if len(endings) != 1 or None in (match for _, match in matches):
        return _ADDRESS
    whole = _GROUP.sub("(?:", pattern)
    before = "^(" if whole.startswith("^") else "^(.*?"
    return {"select": _ADDRESS, "regex": f"{before}{whole.removeprefix('^')}{re.escape(endings.pop())})"}


def _feeds(response: TextResponse) -> list[str]:
    """Return the feeds on the same origin that a page links, in its order."""
    root = markup_root(response)
    links = [] if root is None else root.xpath(_LINKS)
    found = [urljoin(response.url, link.get("href")) for link in links if link.get("type", "").lower() in _TYPES]
    return [url for url in dict.fromkeys(found) if place_of(url) == place_of(response.url)]


async def _grade(get: Get, url: str, pattern: str) -> int:
    """Return the use of a feed: 0 where its entries do not lead to several threads, 1 where they do, 2 where they also count
    replies, 3 where they lead to posts. A feed of new threads does not show which threads have changed.
    """
    try:
        response = await get(url)
        if response.status != 200:
            return 0
        items = list(xml_of(response).iter("item", "entry"))
        entries = [urljoin(response.url, _address(entry)) for entry in items]
    except (FetchFailed, UnreadablePage):
        return 0
    here = place_of(response.url)
    threads = [found[1] for one in entries if place_of(one) == here and (found := re.search(pattern, one)) is not None]
    if len(set(threads)) < 2 or len(threads) < LEAST * len(entries):
        return 0
    if len({one for one in entries if urlsplit(one).fragment}) >= LEAST * len(entries):
        return _POSTS
    return _COUNTS if all(item.xpath(_COUNT) for item in items) else 1


def _address(entry: Any) -> str:
    """Return the address that the site file's selectors find."""
    for path in _ADDRESS:
        for one in entry.xpath(path):
            if text := (one if isinstance(one, str) else one.text or "").strip():
                return str(text)
    return ""
