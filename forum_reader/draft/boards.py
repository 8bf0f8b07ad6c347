"""Boards of a forum: boards in other boards or in categories, by links with the same markup as links to known boards; the link
from a thread to its board; and, for software without an index, boards by the addresses of pages.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Awaitable, Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import msgspec
import regex
from lxml import etree

from forum_reader.definition.selectors import compiled
from forum_reader.errors import FetchFailed, SiteError
from forum_reader.reading.page_records import ListedForum
from forum_reader.reading.parse_body import strictly
from forum_reader.reading.read_page import read_index

from .address_shape import AddressShape, address_of, shape_of, target_of
from .element_selectors import NAME, has_class, words_of
from .link_groups import PAGE_WORD, LinkGroup, is_other_page
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
        for i, url in page.links():
            match = self.board.fullmatch(unquote(address_of(url)))
            if (
                match is None
                or not 0 < tree.size(i) < _LONGEST_NAME
                or PAGE_WORD.match(tree.string(i))
                or is_other_page(url)
                or (self.coded and not re.search(r"\d", match[1]))
            ):
                continue
            if self.likely is None or self.make(page, i) in self.likely:
                found.setdefault(url, i)
        return found

    def has_threads(self, page: OpenedPage) -> bool:
        """Return True if a page has a link to a thread where lists have one."""
        return any(
            self.make(page, i) in self.threads and self.thread.search(unquote(address_of(url))) is not None
            for i, url in page.links()
        )


def _pattern_of(shape: AddressShape) -> re.Pattern[str]:
    place = "{id}" if "{id}" in shape.template else "{id:path}"
    before, _, after = shape.template.partition(place)
    return re.compile(re.escape(before) + ("([^/?&=;#]+)" if place == "{id}" else shape.inner) + re.escape(after))


_LEAST = 2  # boards of which threads were seen
_ABOVE = 3  # levels above the link


def board_field(pages: Sequence[tuple[OpenedPage, str]], shape: AddressShape) -> dict[str, str] | None:
    """Return the field `forum_id` of pages of threads, each with the address of its board; None where no place has it on all
    pages, or only one board is known.
    """
    if len({board for _, board in pages}) < _LEAST:
        return None
    first, board = pages[0]
    links = [one for one in first.root.iter("a") if _target(first, one) == board]
    for candidate in dict.fromkeys(selector for link in links for selector in _selectors(link)):
        found = [(page, wanted, compiled("html", candidate)(page.root)) for page, wanted in pages]
        if all(some and _target(page, some[0]) == wanted and _has_id(shape, some[0], wanted) for page, wanted, some in found):
            return {"select": f"{candidate}/@href", "regex": shape.pattern}
    return None


def _target(page: OpenedPage, link: Any) -> str | None:
    return target_of(page.base, link.get("href") or "")


def _has_id(shape: AddressShape, link: Any, board: str) -> bool:
    """Return True if the board's id is in the link as written, which may be only `../`."""
    known, written = (re.search(shape.pattern, unquote(one)) for one in (board, link.get("href") or ""))
    return known is not None and written is not None and known[1] == written[1]


def _selectors(link: Any) -> Iterator[str]:
    """Yield XPaths by the names of the link and of its ancestors: the last link there, as in a trail from the index, then
    others.
    """
    level = link
    for _ in range(_ABOVE + 1):
        if level is None or level.tag in ("body", "html"):
            return
        inner = "" if level is link else "//a[@href]"
        names = [has_class(name) for name in _names(level.get("class"))]
        names += [f"@id='{name}'" for name in _names(level.get("id"))]
        for name in names:
            yield from (f"(//{level.tag}[{name}]{inner})[{place}]" for place in ("last()", "last() - 1", "1"))
        level = level.getparent()


def _names(text: str | None) -> list[str]:
    return [name for name in (text or "").split() if NAME.match(name) and not re.search(r"\d{2}", name)]


MOST = 500
"""Forums taken from one page."""
_LONGEST = 2000  # characters of an address that are read
_LONGEST_ID = 200
_MOST_S = 0.1  # for one address
_PLACE = re.compile(r"\{forum(:path)?\}")


def addressed_forums(
    profile: Mapping[str, Any], base_url: str, page_url: str, root: etree._Element | None
) -> tuple[ListedForum, ...]:
    """Return the forum in the page's own address; else the forums in its links' addresses, with the links' texts: of a thread's
    page the first one, which stands above the posts. `profile`: its table; `root`: the page's tree. Empty where no address has
    one.
    """
    pattern = _forum_pattern(profile)
    if pattern is None:
        return ()
    if own := _forum_of(page_url, base_url, pattern):
        return (ListedForum(id=own, name=own),)
    found: dict[str, ListedForum] = {}
    for url, text in _links(page_url, root):
        forum = _forum_of(url, base_url, pattern)
        if forum and forum not in found:
            found[forum] = ListedForum(id=forum, name=text or forum)
        if len(found) >= (1 if _is_thread(profile, base_url, page_url) else MOST):
            break
    return tuple(found.values())


def _forum_pattern(profile: Mapping[str, Any]) -> regex.Pattern[str] | None:
    """Return a pattern of the forum in an address behind `base_url`; None where nothing distinguishes forums from other pages."""
    if pattern := profile.get("recognise", {}).get("forum"):
        return regex.compile(pattern)
    listed = profile.get("pages", {}).get("list", {})
    template = str(listed.get("first_url") or listed.get("url") or "")
    place = _PLACE.search(template)
    if place is None or not re.search("[a-z]", template[: place.start()]):
        return None  # the pattern would match any address
    before = regex.escape(template[: place.start()])
    if place[1] is None:
        return regex.compile(f"{before}([^/?#&]+)")
    after = regex.escape(re.split(r"[?{]", template[place.end() :])[0].rstrip("/"))
    return regex.compile(f"{before}([^?#]+?)(?:{after})?/?(?:[?#]|$)")


def _is_thread(profile: Mapping[str, Any], base_url: str, url: str) -> bool:
    """Return True if an address is a thread's, by the text before `{thread}` in the profile's addresses."""
    template = str(profile.get("pages", {}).get("comments", {}).get("url", ""))
    before = template.partition("{thread}")[0]
    return bool(re.search("[a-z]", before)) and "{" not in before and (_below(url, base_url) or "").startswith(before)


def _forum_of(url: str, base_url: str, pattern: regex.Pattern[str]) -> str | None:
    address = _below(url, base_url)
    if address is None:
        return None
    try:
        match = pattern.match(address, timeout=_MOST_S)
    except TimeoutError:
        return None
    forum = unquote(match[1]).strip("/") if match else ""
    return forum if 0 < len(forum) <= _LONGEST_ID and not re.search(r"\s", forum) and forum.isprintable() else None


def _below(url: str, base_url: str) -> str | None:
    """Return the part of an address behind the forum's root; None for an address elsewhere."""
    base, here = urlsplit(base_url), urlsplit(urldefrag(url).url[:_LONGEST])
    root = base.path.rstrip("/")
    if (here.netloc, here.scheme) != (base.netloc, base.scheme) or not here.path.startswith(f"{root}/"):
        return None
    return here.path[len(root) :] + (f"?{here.query}" if here.query else "")


def _links(page_url: str, root: etree._Element | None) -> Iterator[tuple[str, str]]:
    for link in root.iter("a") if root is not None else ():
        if href := link.get("href"):
            try:
                yield urljoin(page_url, href.strip()), words_of(link)[:_LONGEST_ID]
            except ValueError:
                continue  # `http://[`
