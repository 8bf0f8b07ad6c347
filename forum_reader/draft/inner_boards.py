"""Boards in other boards or in categories: found by links with the same markup as links to known boards."""

from __future__ import annotations

import itertools
import re
from collections.abc import Awaitable, Callable, Container, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote, urldefrag, urlsplit

import msgspec

from forum_reader.errors import FetchFailed, SiteError
from forum_reader.reading.read_page import ListedForum, read_index
from forum_reader.reading.reading_budget import strictly

from .link_groups import PAGE_WORD, AddressShape, LinkGroup, address_of, is_other_page, shape_of, target_of
from .page_sample import OpenedPage

if TYPE_CHECKING:
    from forum_reader.definition.site import Site
    from forum_reader.page.response import Get

MOST_BOARDS = 24
"""Pages of boards that are searched for boards in them."""
_LONGEST_NAME = 200

Open = Callable[[str], Awaitable["OpenedPage | None"]]
"""Returns a page; None where it cannot be read, or the limit of pages is reached."""
Make = tuple[tuple[str, str], ...]  # tags and first classes of a link and the elements around it


async def boards_below(site: Site, forums: Mapping[str, ListedForum], get: Get) -> dict[str, ListedForum]:
    """Return the forums that an index of known software lists, and those that only their pages list, in the markup of the index.
    Forums below another one are searched first.
    """
    found = dict(forums)
    index = site.pages.index
    if index is None or (index.format, site.pages.list.format) != ("html", "html"):
        return found
    waiting = sorted(forums, key=lambda id_: forums[id_].parent_id is None)
    for id_ in itertools.islice(waiting, MOST_BOARDS):  # the list grows
        try:
            with strictly():
                page = read_index(site, await get(site.list_url(id_)))
        except (SiteError, FetchFailed):
            continue
        for one in page.forums:
            if one.id not in found:
                found[one.id] = msgspec.structs.replace(one, parent_id=one.parent_id or id_)
                waiting.append(one.id)
    return found


@dataclass(slots=True)
class Boards:
    """Boards of a forum: addresses and names. `on_index`: the index's links to boards; `unseen`: number of boards whose pages
    were not searched for boards in them.
    """

    names: dict[str, str]
    on_index: LinkGroup
    unseen: int


async def all_boards(
    index: LinkGroup, categories: LinkGroup | None, listed: LinkGroup, get: Open, asked: Container[str]
) -> Boards | None:
    """Return the boards of an index and all boards in them; None where they cannot be recognised by their addresses. A page that
    is in `asked` and cannot be read is left out.
    """
    links = _BoardLinks.of(index, listed)
    if links is None:
        return None
    known = _named(index)
    on_index = links.on(index.page)
    above = _named(categories) if categories else {}
    names = above | known | {url: index.page.tree.string(i) for url, i in on_index.items() if url not in known}
    waiting = list(names)
    found: dict[str, str] = {}
    makes = {links.make(index.page, i) for i in index.places}
    made = {url: links.make(index.page, i) for url, i in on_index.items()}
    unseen = 0
    for url in waiting:  # the list grows
        page = await get(url)
        if page is None:
            unseen += url not in asked
            if url not in asked and (url in known or made.get(url) in makes):
                found[url] = names[url]
            continue
        inner = {one: i for one, i in links.on(page).items() if one not in names}
        has_threads = links.has_threads(page)
        if has_threads or (not inner and (url in known or made.get(url) in makes)):
            found[url] = names[url]
            makes |= {made[url]} if url in made else set()
        if has_threads or url in known or url in above:
            names |= {one: page.tree.string(i) for one, i in inner.items()}
            made |= {one: links.make(page, i) for one, i in inner.items()}
            waiting += inner
    places = [(i, url) for url, i in on_index.items() if url in found]
    group = LinkGroup(index.page, [i for i, _ in places], [url for _, url in places], [found[url] for _, url in places])
    return Boards(found, group, unseen)


def _named(group: LinkGroup) -> dict[str, str]:
    return {urldefrag(url).url: title for url, title in zip(group.urls, group.titles, strict=True)}


@dataclass(slots=True)
class _BoardLinks:
    """Finds links to boards, by the markup of links to known boards and to threads: a board has links to threads at the same
    place.
    """

    board: re.Pattern[str]  # of an address; its first group is the id
    thread: re.Pattern[str]
    threads: set[Make]
    likely: set[Make] | None  # None: any markup, as a word stands before the id
    coded: bool

    @classmethod
    def of(cls, index: LinkGroup, listed: LinkGroup) -> _BoardLinks | None:
        shape, inner = shape_of(index.urls, whole=True), shape_of(listed.urls)
        if shape is None or inner is None or shape.template == "{url}":
            return None
        is_named = re.search(r"[a-z]", shape.template.partition("{id")[0], re.IGNORECASE)
        return cls(
            board=_pattern_of(shape),
            thread=re.compile(inner.pattern),
            threads={cls.make(listed.page, i) for i in listed.places},
            likely=None if is_named else {cls.make(index.page, i) for i in index.places},
            coded=all(re.search(r"\d", id_) for id_ in shape.ids),
        )

    @staticmethod
    def make(page: OpenedPage, i: int) -> Make:
        """Return tags and first classes of a link and the elements around it, on any page."""
        tree = page.tree
        found: list[tuple[str, str]] = []
        while i >= 0 and len(found) < 3:
            found.append((tree.tag[i], (tree.attributes[i].get("class") or "").partition(" ")[0]))
            i = tree.parent[i]
        return tuple(found)

    def on(self, page: OpenedPage) -> dict[str, int]:
        """Return the links of a page to boards, the first to each."""
        tree = page.tree
        found: dict[str, int] = {}
        for i, tag in enumerate(tree.tag):
            href = tree.attributes[i].get("href") if tag == "a" else None
            if not href or not 0 < tree.size(i) < _LONGEST_NAME or PAGE_WORD.match(tree.string(i)):
                continue
            url = target_of(page.base, href)
            if url is None or urlsplit(url).netloc != urlsplit(page.url).netloc or url == urldefrag(page.url).url:
                continue
            match = self.board.fullmatch(unquote(address_of(url)))
            if match is None or is_other_page(url) or (self.coded and not re.search(r"\d", match[1])):
                continue
            if self.likely is None or self.make(page, i) in self.likely:
                found.setdefault(url, i)
        return found

    def has_threads(self, page: OpenedPage) -> bool:
        """Return True if a page has a link to a thread where lists have one."""
        tree = page.tree
        return any(
            tag == "a"
            and self.make(page, i) in self.threads
            and (url := target_of(page.base, tree.attributes[i].get("href") or "")) is not None
            and self.thread.search(unquote(address_of(url))) is not None
            for i, tag in enumerate(tree.tag)
        )


def _pattern_of(shape: AddressShape) -> re.Pattern[str]:
    place = "{id}" if "{id}" in shape.template else "{id:path}"
    before, _, after = shape.template.partition(place)
    return re.compile(re.escape(before) + ("([^/?&=;#]+)" if place == "{id}" else shape.inner) + re.escape(after))
