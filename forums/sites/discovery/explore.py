"""Finding out what the pages of an unknown forum are, from any of its addresses, by following a few links.

What a page is follows from what is on it and behind its links: a page with posts is a thread, one whose links lead to threads is
a list, one whose links lead to lists is an index.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urldefrag, urljoin, urlsplit

from forums.sites.http.fetch import FetchFailed, Visitor

from .link_groups import LinkGroup, link_groups
from .opened_page import OpenedPage, opened

if TYPE_CHECKING:
    from scrapy.http import TextResponse

MOST_PAGES = 24
"""Fetched for one forum."""
_GROUPS = 4  # of links of a page, that are followed
_SAMPLES = 2  # links of a group that are followed to see what it leads to
_MORE_SAMPLES = 8  # where those have a thread's title and no posts: new threads have but one
_THREADS = 5  # that are read
_UPWARDS = 8  # links of a thread's page that may lead to its list
_HELD = 0.5  # what a list's rows hold of the text that looks like posts


@dataclass(slots=True)
class FoundForum:
    """What was found: a list with its threads, some of which were read; the index and its links to forums, where there is one."""

    listed: LinkGroup
    threads: list[OpenedPage]
    forums: LinkGroup | None = None
    lists: list[LinkGroup] = field(default_factory=list)


class Explorer:
    """Looks at the pages of one forum, each once."""

    def __init__(self, visitor: Visitor) -> None:
        self._visitor = visitor
        self._known: dict[str, OpenedPage | None] = {}

    def response(self, url: str) -> TextResponse | None:
        """A page that was looked at."""
        page = self._known.get(urldefrag(url).url)
        return page.response if page is not None else None

    async def look(self, response: TextResponse) -> FoundForum | None:
        """What the page belongs to; None where no list of threads is found."""
        page = opened(response)
        if page is None:
            return None
        self._known[urldefrag(page.url).url] = page
        found = await self._as_list(page) or await self._as_index(page)
        if found is None and page.is_thread:
            found = await self._above(page)
        if found is not None:
            await self._read_more(found)
        return found

    async def _get(self, url: str) -> OpenedPage | None:
        url = urldefrag(url).url
        if url not in self._known:
            if len(self._known) >= MOST_PAGES:
                return None
            self._known[url] = None
            try:
                response = await self._visitor.get(url)
                self._known[url] = opened(response) if response.status == 200 else None
            except FetchFailed:
                pass
        return self._known[url]

    async def _as_list(self, page: OpenedPage) -> FoundForum | None:
        """The group of links that lead to threads with the links' titles."""
        for group in link_groups(page)[:_GROUPS]:
            if group.size() < _HELD * page.text_size:
                continue
            threads, bare, others = await self._sampled(group, _SAMPLES)
            if bare and not others:
                threads, bare, others = await self._sampled(group, _MORE_SAMPLES)
            if threads and not others:
                return FoundForum(group, threads)
        return None

    async def _sampled(self, group: LinkGroup, count: int) -> tuple[list[OpenedPage], int, int]:
        """The threads among some pages of a group; how many have their link's title and neither posts nor a list, as a thread of
        one short post looks; and how many are something else.
        """
        threads, bare, others = [], 0, 0
        for n in _spread(len(group.urls), count):
            page = await self._get(group.urls[n])
            if page is None:
                continue
            if not _is_titled(page, group.titles[n]):
                others += 1
            elif page.is_thread:
                threads.append(page)
            elif any(one.size() >= _HELD * page.text_size for one in link_groups(page)[:_GROUPS]):
                others += 1
            else:
                bare += 1
        return threads, bare, others

    async def _as_index(self, page: OpenedPage) -> FoundForum | None:
        for group in link_groups(page)[:_GROUPS]:
            lists: list[LinkGroup] = []
            threads: list[OpenedPage] = []
            for n in _spread(len(group.urls), _SAMPLES):
                inner = await self._get(group.urls[n])
                if inner is not None and (found := await self._as_list(inner)) is not None:
                    lists.append(found.listed)
                    threads += found.threads
            if lists:
                best = max(lists, key=lambda one: len(one.urls))
                return FoundForum(best, [one for one in threads if one.url in best.urls], forums=group, lists=lists)
        return None

    async def _above(self, page: OpenedPage) -> FoundForum | None:
        """The list of a thread: a page that it links to, and that links to it."""
        here = urldefrag(page.url).url
        for url in _upwards(page)[:_UPWARDS]:
            above = await self._get(url)
            group = next((one for one in link_groups(above) if here in one.urls), None) if above is not None else None
            if above is not None and group is not None and group.size() >= _HELD * above.text_size:
                return FoundForum(group, [page])
        return None

    async def _read_more(self, found: FoundForum) -> None:
        """Some more threads, of those with the longest rows first: rows of long threads have links to their pages."""
        known = {one.url for one in found.threads}
        sizes = sorted(
            zip(found.listed.rows(), found.listed.urls, strict=True), key=lambda one: -found.listed.page.tree.size(one[0])
        )
        urls = [found.listed.urls[n] for n in _spread(len(found.listed.urls), _THREADS)] + [url for _, url in sizes[:2]]
        for url in dict.fromkeys(urls):
            if len(found.threads) >= _THREADS + 1:
                break
            if url not in known and (page := await self._get(url)) is not None and page.is_thread:
                found.threads.append(page)


def _spread(count: int, most: int) -> list[int]:
    """Numbers below `count`, spread over it."""
    return sorted({min(count - 1, (2 * n + 1) * count // (2 * most)) for n in range(most)})


def _is_titled(page: OpenedPage, title: str) -> bool:
    """Whether a page has the title that its link has, or the beginning of it."""
    words = "".join(char for char in title.lower() if char.isalnum())[:40]
    shown = page.frame.title or ""
    heads = [shown, page.root.findtext(".//title") or "", *(one.text or "" for one in page.root.iter("h1", "h2", "h3"))]
    return any(words in "".join(char for char in head.lower() if char.isalnum()) for head in heads) if words else False


def _upwards(page: OpenedPage) -> list[str]:
    """Links that may lead to the list that a thread is in: those before its first post, the last ones first."""
    tree, here = page.tree, urlsplit(page.url)
    first = min(block.start for block in page.learned.fields.found.blocks) if page.learned else len(tree)
    found: dict[str, None] = {}
    for i in range(min(first, len(tree)) - 1, -1, -1):
        href = tree.attributes[i].get("href") if tree.tag[i] == "a" else None
        if not href:
            continue
        url = urldefrag(urljoin(page.url, href)).url
        if urlsplit(url).netloc == here.netloc and url != urldefrag(page.url).url and url not in page.pages:
            found.setdefault(url)
    found.setdefault(urljoin(page.url, "/"))
    return list(found)
