"""Comments below static pages, filled by a service with a public interface that the pages name: the list of the pages is learned,
the rest is data (`comment_services.toml`).
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from lxml import etree

from forum_reader.definition.selectors import compiled
from forum_reader.errors import FetchFailed
from forum_reader.reading.page_records import ListedForum
from forum_reader.reading.parse_body import read_at

from .address_shape import AddressShape
from .boards import Open
from .element_selectors import words_of
from .link_groups import LinkGroup, link_groups
from .list_wrapper import learn_list
from .page_sample import OpenedPage
from .paging_links import next_selector
from .wrapper import Wrapper, zone_of

if TYPE_CHECKING:
    from forum_reader.page.response import Get

_PATH = r"^(?:https?://[^/]+)?/?([^?#]+)"
_SHAPE = AddressShape("{url}", _PATH, "", ())
_ARTICLES = 3  # pages that are compared
_GROUPS = 4  # of links that may lead to them
_UPWARDS = 8  # links of an article that may lead to its list
_BODIES = ("[itemprop=articleBody]", ".entry-content", ".post-content", "article", "main", "#content", ".content", "body")
_AROUND = ["script", "style", "nav", "header", "footer", "aside", "noscript", "form", "h1"]
_NOTE = "pages.list.fields: the list does not show new comments: "


class Service(NamedTuple):
    """A service that a page names. `comments` None: its comments are not read."""

    name: str
    mark: str
    address: str
    site: str
    comments: dict[str, Any] | None
    recent: dict[str, Any] | None


@cache
def _known() -> list[dict[str, Any]]:
    text = resources.files("forum_reader.draft").joinpath("comment_services.toml").read_text("utf-8")
    found: list[dict[str, Any]] = tomllib.loads(text)["service"]
    return found


def service_of(page: OpenedPage) -> Service | None:
    """Return the service that fills the page's comments; None where it names none that is known."""
    text = page.response.text
    for one in _known():
        if not (found := compiled("html", one["mark"])(page.root)):
            continue
        own = "".join(etree.tostring(element, encoding="unicode", with_tail=False) for element in found[:1])
        address = _matched(one.get("address"), own) or _matched(one.get("address"), text)
        site = _matched(one.get("key"), text)
        is_read = "comments" in one and address is not None and ("key" not in one or site is not None)
        whole = urljoin(page.base, address or "").rstrip("/")
        tables = (one["comments"], one.get("recent")) if is_read else (None, None)
        return Service(one["name"], one["mark"], whole, site or "", *tables)
    return None


def _matched(pattern: str | None, text: str) -> str | None:
    found = re.search(pattern, text) if pattern is not None else None
    return found[1] if found else None


class StaticPages(NamedTuple):
    """Pages with comments of one service, and the list that leads to them, if it was found."""

    service: Service
    articles: list[OpenedPage]
    group: LinkGroup | None


async def find_static(page: OpenedPage, get: Open) -> StaticPages | None:
    """Find the pages with comments of a service from one of them, or from their list; None where no page names a service."""
    service = service_of(page)
    if service is not None:
        here = page.url.partition("#")[0]
        for url in _upwards(page):
            above = await get(url)
            group = next((one for one in link_groups(above) if here in one.urls), None) if above is not None else None
            if group is not None:
                articles = [page, *await _articles(group, service, get, besides=here)]
                return StaticPages(service, articles, group)
        return StaticPages(service, [page], None)
    for group in link_groups(page)[:_GROUPS]:
        first = await get(group.urls[0])
        named = service_of(first) if first is not None else None
        if first is not None and named is not None:
            return StaticPages(named, [first, *await _articles(group, named, get, besides=first.url)], group)
    return None


async def _articles(group: LinkGroup, service: Service, get: Open, *, besides: str) -> list[OpenedPage]:
    urls = [url for url in group.urls if url != besides][: _ARTICLES - 1]
    pages = [await get(url) for url in urls]
    return [one for one in pages if one is not None and compiled("html", service.mark)(one.root)]


def _upwards(page: OpenedPage) -> list[str]:
    """Return pages of the same site that may list this one: its links, the nearest above it first, and the root."""
    links = sorted((url for _, url in page.links()), key=lambda url: not page.url.startswith(url))
    above = (urljoin(page.url, place) for place in (".", "..", "/"))
    return list(dict.fromkeys([*links, *above]))[:_UPWARDS]


async def static_wrapper(found: StaticPages, get: Get) -> Wrapper | None:
    """Return the tables of a site file for the pages; None where no selectors find the rows of their list."""
    service, group, first = found.service, found.group, found.articles[0]
    table = learn_list(group, _SHAPE, []) if group is not None else None
    if group is None or table is None or service.comments is None:
        return None
    parts = urlsplit(group.page.url)
    hrefs = [one.get("href") or "" for one in group.elements]
    if not any(one.startswith(("/", "http")) for one in hrefs):
        table["fields"]["id"]["prefix"] = parts.path.rpartition("/")[0].lstrip("/") + "/"
    listed = {"url": parts.path or "/", "order": "created"} | table
    fields = listed["fields"]
    if "created_at" not in fields and "last_activity" in fields:  # of the page, as the list knows nothing of its comments
        fields["created_at"] = fields.pop("last_activity")
    fields.setdefault("token", ".")
    if (following := next_selector(group.page.root, group.page.url, group.page.next)) is not None:
        listed["next"] = following
    values = {"{service}": service.address, "{site}": service.site, "{base}": f"{parts.scheme}://{parts.netloc}"}
    values["{page_path}"] = "/{thread:path}"
    pages = {"list": listed, "thread": _article(found), "comments": _filled(service.comments, values)}
    missing = [f"{_NOTE}they are found when its pages are checked again"]
    if service.recent is not None:
        recent = _filled(service.recent, values)
        if await _answers(get, recent["url"]):
            pages["recent"], missing = recent, []
    forum = ListedForum(id="all", name=group.page.frame.title or "all pages")
    zone = zone_of(first.response.text, read_at(first.response), first.frame.language)
    return Wrapper(pages, (forum,), None, zone, "all", missing)


async def _answers(get: Get, url: str) -> bool:
    """Return True if the page of the newest comments is there, and has some."""
    try:
        response = await get(url)
        return response.status == 200 and bool(json.loads(response.text))
    except (FetchFailed, ValueError):
        return False


def _article(found: StaticPages) -> dict[str, Any]:
    roots = [one.root for one in found.articles]
    body = next((one for one in _BODIES if _each_has(one, roots)), "body")
    remove = [*_AROUND, *(one.strip() for one in found.service.mark.split(",") if not one.strip().startswith("script"))]
    if found.service.name == "isso":
        remove.append("#isso-thread")
    fields: dict[str, Any] = {"title": "h1" if _each_has("h1", roots) else "title", "body": {"select": body, "remove": remove}}
    if _each_has("time[datetime]", roots):
        fields["created_at"] = "time[datetime]"
        remove.append("time")
    return {"url": "/{thread:path}", "fields": fields}


def _each_has(selector: str, roots: Sequence[Any]) -> bool:
    """Return True if a selector finds a text in each page, and the same element once."""
    found = [compiled("html", selector)(root) for root in roots]
    if selector.startswith("time"):
        return all(found)
    return all(len(one) == 1 and words_of(one[0]) for one in found)


def _filled(value: Any, values: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(one, values) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, values) for one in value]
    if isinstance(value, str):
        for name, text in values.items():
            value = value.replace(name, text)
    return value
