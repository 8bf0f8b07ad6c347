"""Links of a forum's pages to the other pages of a list or a thread (by role, class or text, or, where pages have only
numbers, the link whose number follows that of the page itself), and to a feed, as the page of the newest messages.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from parsel import Selector

from forum_reader.definition.page_requests import place_of
from forum_reader.definition.selectors import compiled
from forum_reader.errors import FetchFailed, UnreadablePage
from forum_reader.page.page_kind import is_same_thing
from forum_reader.reading.parse_body import markup_root
from forum_reader.reading.xml_body import xml_of

from .address_shape import address_of, target_of
from .element_selectors import NAME, class_selectors, has_class

if TYPE_CHECKING:
    from forum_reader.page.response import Get, TextResponse

    from .explore import FoundForum


_PAGE_NUMBER = re.compile(r"^[\[(]?\s*(\d{1,4})\s*[\])]?$")
_ABOVE = 4  # levels above a link that are searched for a class or an id
_MOST_LINKS = 60  # links that are tried
_SHOWN = "number(translate(normalize-space(text()), '[]()', ''))"
_NEAR = {
    step: f"({' | '.join(f'{axis}::text()[{n}]' for n in (1, 2, 3))})[normalize-space(translate(., '[](),.|·-', ''))][{nearest}]"
    for step, axis, nearest in ((1, "preceding", "last()"), (-1, "following", "1"))
}
"""The text next to a link, but for separators. Of three: a search of all texts would be quadratic."""
_PLAIN = "[not(ancestor::a[@href])]"


def numbered_selector(root: Any, url: str, step: int = 1) -> str | None:
    """Return an XPath of the link to the next page; None where no link has the number after this page's, which stands right
    before it, without a link or with a class that the link lacks. `step` -1: the link to the page before, on a page with the
    highest number.
    """
    links = [one for one in root.iter("a") if _number(one) is not None and _leads_on(one, url)]
    for link in links[:_MOST_LINKS]:
        here = next(iter(link.xpath(_NEAR[step])), None)
        if here is None or not (number := re.search(r"\d+", here)) or int(number[0]) != (_number(link) or 0) - step:
            continue
        own = here.getparent().getparent() if here.is_tail else here.getparent()
        apart = [near for near in (own, own.getparent()) if link not in near.iter("a")]
        classes = [f"[ancestor::*[position() < 3][{has_class(name)}]]" for near in apart for name in _classes(near)]
        for mark in (_PLAIN, *classes):
            selector = _scope(link) + _beside(step, mark)
            found = compiled("html", selector)(root)
            if (
                found
                and all(_leads_on(one, url) for one in found)
                and len({target_of(url, one.get("href")) for one in found}) == 1
            ):
                return selector
    return None


def _beside(step: int, mark: str) -> str:
    """Return the XPath of links whose number follows the one of the text next to them, which has a mark of the page itself."""
    own = f"{_NEAR[step]}{mark}"
    digits = f"number(translate({own}, translate({own}, '0123456789', ''), ''))"
    return f"//a[@href][{_SHOWN} > 0][{_SHOWN} = {digits} {'+' if step > 0 else '-'} 1]"


def _number(element: Any) -> int | None:
    """Return the number in the element's own text."""
    match = _PAGE_NUMBER.match(element.text.strip()) if element.text else None
    return int(match[1]) if match else None


def _leads_on(link: Any, url: str) -> bool:
    """Return True if the link may lead to a page of the same list or thread."""
    target = target_of(url, link.get("href") or "#")
    if target is None or target == urldefrag(url).url:
        return False
    parts, here = urlsplit(target), urlsplit(url)
    return parts.netloc == here.netloc and is_same_thing(parts.path, here.path)


def _scope(link: Any) -> str:
    """Return the XPath of the pager around a link by its class or id; empty where it has none."""
    for level in itertools.islice(link.iterancestors(), _ABOVE):
        if level.tag not in ("body", "html") and (names := _classes(level)):
            return f"//{level.tag}[{has_class(names[0])}]"
        if NAME.match(level.get("id") or ""):
            return f"//{level.tag}[@id='{level.get('id')}']"
    return ""


def _classes(element: Any) -> list[str]:
    return [name for name in (element.get("class") or "").split() if NAME.match(name)]


_PAGE = re.compile(r"(\b(?:page|pg|p)[=/-]?)2(?!\d)", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
_FORWARD = re.compile(r"[>»›→]|\bnext\b|\bolder\b|\bweiter\b|suivante?|siguiente|следующ|下一|次", re.IGNORECASE)
_LAST = re.compile(r"last\b|letzte|derni[eè]re?|[uú]ltim|последн|末页|末頁|尾页|尾頁|最后|最後", re.IGNORECASE)
_NEXT_NAME = re.compile(r"next|right|forward|older", re.IGNORECASE)


def second_page(response: TextResponse) -> str | None:
    """Return the path of this page's second page, with `{page}` for the number, from a link with the text 2, or with rel=next."""
    for link in Selector(text=response.text, type="html").xpath("//a[@href][normalize-space() = '2' or @rel = 'next']"):
        address = address_of(urljoin(response.url, link.attrib["href"].strip()))
        if match := _PAGE.search(address):
            return f"{address[: match.end(1)]}{{page}}{address[match.end() :]}"
    return None


def next_selector(root: Any, url: str, following: str | None) -> str | None:
    """Return a selector of the link to `following`, the next page: by its role, its class, its text; by the number of the page
    where none finds just it, or pages have only numbers.
    """
    return (_named_selector(root, url, following) if following is not None else None) or numbered_selector(root, url)


def leads_to(selector: str, root: Any, base: str) -> str | None:
    """Return the address of a selector's first link."""
    href = next((one.get("href") for one in compiled("html", selector)(root)), None)
    return target_of(base, href) if href else None


def _named_selector(root: Any, url: str, following: str) -> str | None:
    page = Selector(root=root, type="html")
    if (wanted := target_of(url, following)) is None:
        return None
    links = [one for one in page.xpath("//a[@href] | //link[@href]") if target_of(url, one.attrib["href"]) == wanted]
    first: str | None = None  # also of the last page, behind it
    for link in sorted(links, key=_is_number_or_last):
        for candidate in _of_link(link):
            found = page.xpath(candidate) if candidate.startswith(("/", "(")) else page.css(candidate)
            targets = [target_of(url, one.attrib.get("href", "")) for one in found]
            if set(targets) == {wanted}:
                return candidate
            if targets[:1] == [wanted] and _NEXT_NAME.search(candidate):
                first = first or candidate
    return first


def _is_number_or_last(link: Selector) -> bool:
    """Return True if a link is to this page only, or to the last page: the second of two pages has several links."""
    text = " ".join(link.xpath("string()").get("").split())
    return text.isdigit() or _LAST.match(text) is not None


def _of_link(link: Selector) -> list[str]:
    element = link.root
    found = [f'{element.tag}[rel~="next"]'] if "next" in (element.get("rel") or "").lower() else []
    inner = next((one for one in element.iterchildren() if isinstance(one.tag, str) and class_selectors(one)), None)
    parent = element.getparent()
    for one, form in ((element, "{}"), (parent, "{} > a"), (inner, "a:has(> {})")):
        named = class_selectors(one) if one is not None else []
        found += [form.format(by_class) for by_class in named if _NEXT_NAME.search(by_class)]
    text = " ".join(link.xpath("string()").get("").split())
    if text and not text.isdigit() and "'" not in text and len(text) < 40:
        found += [f"//a[@href][{_has_text(text)}]"] if _has_text(text) else []
    if title := element.get("title") or element.get("aria-label"):
        name = "title" if element.get("title") else "aria-label"
        if '"' not in title and len(title) < 40:
            found.append(f'a[{name}="{title}"]')
    pictures = (picture.get("alt") or "" for picture in element.iterchildren("img"))
    return found + [f'a:has(> img[alt="{alt}"])' for alt in pictures if alt and '"' not in alt and len(alt) < 40]


def _has_text(text: str) -> str:
    """Return the XPath condition of a link's text; of `Page 2 >>` without the number. Empty where only the number distinguishes
    it.
    """
    words = [word.strip() for word in _NUMBER.split(text)]
    if len(words) == 1:
        return f"normalize-space() = '{text}'"
    if not _FORWARD.search(text):
        return ""
    begins = [f"starts-with(normalize-space(), '{words[0]}')"] if words[0] else []
    return " and ".join(begins + [f"contains(., '{word}')" for word in words[1:] if word])


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
    table = await _of_feeds(get, page.response, pattern, comments)
    if table is not None and "{url}" in comments:
        table["fields"]["url"] = _thread_url(pattern, found.listed.urls)
    return table


async def recent_of_profile(get: Get, profile: Mapping[str, Any], base_url: str, response: TextResponse) -> dict[str, Any] | None:
    """Return the table `[pages.recent]` for software whose profile has none, where the page links a feed of its threads."""
    pages = profile.get("pages", {})
    pattern = None if "recent" in pages else _thread_pattern(pages)
    address = pages.get("comments", {}).get("url", "")
    table = await _of_feeds(get, response, pattern, address) if pattern is not None else None
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


async def _of_feeds(get: Get, response: TextResponse, pattern: str, address: str) -> dict[str, Any] | None:
    """Return the table of the best feed. `address`: of threads; entries have its parameters before the id, too."""
    fixed = set(urlsplit(address.partition("{")[0]).query.split("&")[:-1])
    graded = [(grade, url) for url in feeds_of(response)[:MOST_FEEDS] if (grade := await _grade(get, url, pattern, fixed))]
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


def feeds_of(response: TextResponse) -> list[str]:
    """Return the feeds on the same origin that a page links, in its order."""
    root = markup_root(response)
    links = [] if root is None else root.xpath(_LINKS)
    found = [urljoin(response.url, link.get("href")) for link in links if link.get("type", "").lower() in _TYPES]
    return [url for url in dict.fromkeys(found) if place_of(url) == place_of(response.url)]


async def _grade(get: Get, url: str, pattern: str, fixed: set[str]) -> int:
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
    of_threads = [one for one in entries if place_of(one) == here and fixed <= set(urlsplit(one).query.split("&"))]
    threads = [found[1] for one in of_threads if (found := re.search(pattern, one)) is not None]
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
