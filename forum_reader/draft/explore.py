"""Explores an unknown forum from any of its addresses, by following a few links.

The kind of a page follows from its content and the pages behind its links: a page with posts is a thread, a page whose links
lead to threads is a list, a page whose links lead to lists is an index.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import urldefrag, urljoin

from forum_reader.errors import FetchFailed

from .address_shape import bases, common_end, shape_of
from .boards import MOST_BOARDS, Boards, all_boards
from .link_groups import (
    LinkGroup,
    beginning_with,
    by_title,
    is_in_posts,
    is_of,
    is_other_page,
    is_titled,
    link_groups,
    make_of,
    whole_threads,
)
from .page_sample import OpenedPage, opened
from .paging_links import leads_to, next_selector, numbered_selector

if TYPE_CHECKING:
    from forum_reader.page.response import Get, TextResponse

MOST_PAGES = 24
"""Pages fetched for one forum."""
_GROUPS = 4  # groups of a page's links that are followed
_SAMPLES = 2  # links of a group that are followed to find its kind
_MORE_SAMPLES = 8  # where the samples have a thread's title and no posts: new threads have only one
_THREADS = 5  # that are read
_FOLLOWED = 2  # threads whose second page is read
_ALONE = re.compile(r"\D{0,12}(\d{1,3}(?:[., ]\d{3})*|\d{1,7})\b\D{0,12}$")
_LONGEST_COUNT = 20  # characters of a number of replies
_UPWARDS = 8  # links of a thread's page that may lead to its list
_OLD_UPWARDS = 3  # of these, links that may be the list of an old thread
_BOARDS = 6  # of an index that are searched for the thread
_SPENT = 16  # more pages, where a page shows posts
_HELD = 0.5  # share of the text that looks like posts in a list's rows


@dataclass(slots=True)
class FoundForum:
    """Result of an exploration: a list with its threads, some of which were read; the index and its links to forums, if any."""

    listed: LinkGroup
    threads: list[OpenedPage]
    forums: LinkGroup | None = None
    lists: list[LinkGroup] = field(default_factory=list)
    of_boards: list[tuple[OpenedPage, str]] = field(default_factory=list)
    """Threads of several boards, each with the address of its board."""
    categories: LinkGroup | None = None
    """Links that lead to `forums`, where the index has no links to boards."""
    boards: Boards | None = None
    """All boards, including boards in boards; None where they cannot be recognised by their addresses."""
    following: dict[str, OpenedPage] = field(default_factory=dict)
    """Second pages of threads, by the address of the first."""


class Explorer:
    """Explores the pages of one forum, each fetched once."""

    def __init__(self, get: Get) -> None:
        self._fetch = get
        self._known: dict[str, OpenedPage | None] = {}
        self._most = MOST_PAGES

    async def find(self, response: TextResponse) -> FoundForum | None:
        """Find the forum that the page belongs to; None where no list of threads is found."""
        page = opened(response)
        if page is None:
            return None
        self._most += len(self._known)
        self._known[urldefrag(page.url).url] = page
        is_thread = page.is_thread and not await self._holds_threads(page) and not await self._holds_boards(page)
        found = await self._showing_posts(page) if is_thread else None
        found = found or (await self._above(page) if is_thread else None)
        found = found or await self._of_boards(page)
        if found is not None and found.forums is None and not found.listed.page.marks.dates:
            found = await self._boards_showing_posts(found) or found
        if found is not None:
            if found.listed.shows_posts:
                self._most += _SPENT  # on links to the same threads
                await self._read_own_list(found)
            await self._read_whole(found)
            await self._read_other_addresses(found)
            await self._read_boards(found)
            await self._read_more(found)
            await self._read_on(found)
        return found

    async def page(self, url: str) -> OpenedPage | None:
        """Return a page; None where it cannot be read, or the limit of pages is reached."""
        url = urldefrag(url).url
        if url not in self._known:
            if len(self._known) >= self._most:
                return None
            self._known[url] = None
            try:
                response = await self._fetch(url)
                self._known[url] = opened(response) if response.status == 200 else None
            except FetchFailed:
                pass
        return self._known[url]

    async def _of_boards(self, page: OpenedPage) -> FoundForum | None:
        """Read the page as a list or as an index; an index may also show the newest threads of its forums."""
        listed = await self._as_list(page)
        if listed is not None and next_selector(page.root, page.url, page.next):
            return listed
        index = await self._as_index(page)
        if index is None or listed is None:
            return listed or index or await self._of_categories(page)
        return index if is_of(listed.listed, index.lists) else listed

    async def _holds_threads(self, page: OpenedPage) -> bool:
        """Return True if what looks like posts are rows of a list: each has a link to a thread with the link's title."""
        for group in link_groups(page)[:_GROUPS]:
            if is_in_posts(group, page):
                threads, bare, others = await self._sampled(group, _SAMPLES, deeper=False)
                if (threads or bare) and not others:
                    return True
        return False

    async def _holds_boards(self, page: OpenedPage) -> bool:
        """Return True if what looks like posts are rows of an index, with author and date of the newest post: links lead to
        lists.
        """
        for group in link_groups(page)[:_GROUPS]:
            if is_in_posts(group, page):
                numbers = _spread(len(group.urls), _SAMPLES)
                inner = [(one, n) for n in numbers if (one := await self.page(group.urls[n])) is not None]
                if inner and all([is_titled(one, group.titles[n]) and await self._is_list(one) for one, n in inner]):
                    return True
        return False

    async def _is_list(self, page: OpenedPage) -> bool:
        return not page.is_thread or await self._holds_threads(page)

    async def _showing_posts(self, page: OpenedPage) -> FoundForum | None:
        """Return the list of a board that shows the first posts of its threads itself, each with the same link to the thread: a
        thread begins with the text that stands next to its link.
        """
        groups = [part for whole in link_groups(page) for part in by_title(whole)]
        for group in sorted(groups, key=lambda one: -len(one.urls)):  # only long threads have a link to what is left out
            numbers = _spread(len(group.urls), _MORE_SAMPLES)  # threads of one post look like no thread
            threads = [(n, one) for n in numbers if (one := await self.page(group.urls[n])) is not None and one.is_thread]
            if threads and (listed := beginning_with(group, threads)) is not None:
                return FoundForum(listed, [one for _, one in threads])
        return None

    async def _boards_showing_posts(self, found: FoundForum) -> FoundForum | None:
        """Return the boards to which the links of a list lead, where what looks like a thread is a board that shows posts."""
        for page in found.threads[:1]:
            if (inner := await self._showing_posts(page)) is not None:
                of_boards = [(one, page.url) for one in inner.threads]
                return replace(inner, forums=found.listed, lists=[inner.listed], of_boards=of_boards)
        return None

    async def _as_list(self, page: OpenedPage) -> FoundForum | None:
        """Return the list whose group of links leads to threads with the links' titles."""
        for group in link_groups(page)[:_GROUPS]:
            if group.size() < _HELD * page.text_size:
                continue
            threads, bare, others = await self._sampled(group, _SAMPLES)
            if bare and not others:
                threads, bare, others = await self._sampled(group, _MORE_SAMPLES)
            if threads and not others:
                return FoundForum(group, threads)
        return None

    async def _sampled(self, group: LinkGroup, count: int, *, deeper: bool = True) -> tuple[list[OpenedPage], int, int]:
        """Return the threads among some pages of a group; the number of pages that have their link's title and neither posts nor
        a list, as a thread of one short post does; and the number of other pages.
        """
        threads, bare, others = [], 0, 0
        for n in _spread(len(group.urls), count):
            page = await self.page(group.urls[n])
            if page is None:
                continue
            if not is_titled(page, group.titles[n]):
                others += 1
            elif page.is_thread and not (deeper and await self._holds_threads(page)):
                threads.append(page)
            elif page.is_thread or any(one.size() >= _HELD * page.tree.size(0) for one in link_groups(page)[:_GROUPS]):
                others += 1
            else:
                bare += 1
        return threads, bare, others

    async def _of_categories(self, page: OpenedPage) -> FoundForum | None:
        """Read the page as an index of pages that are indexes themselves."""
        for group in link_groups(page)[:_GROUPS]:
            for n in _spread(len(group.urls), _SAMPLES):
                inner = await self.page(group.urls[n])
                found = await self._as_index(inner) if inner is not None and not inner.is_thread else None
                if found is not None:
                    found.categories = group
                    return found
        return None

    async def _as_index(self, page: OpenedPage) -> FoundForum | None:
        for group in link_groups(page)[:_GROUPS]:
            lists: list[LinkGroup] = []
            threads: list[tuple[OpenedPage, str]] = []
            for n in _spread(len(group.urls), _SAMPLES):
                inner = await self.page(group.urls[n])
                if inner is None or not await self._is_list(inner):
                    continue  # a thread, which may have a box with others
                found = await self._as_list(inner)
                if found is not None and len(set(found.listed.urls) - set(group.urls)) > _HELD * len(found.listed.urls):
                    lists.append(found.listed)
                    threads += [(one, inner.url) for one in found.threads]
            if lists:
                best = max(lists, key=lambda one: len(one.urls))
                read = [one for one, _ in threads if one.url in best.urls]
                return FoundForum(best, read, forums=group, lists=lists, of_boards=threads)
        return None

    async def _above(self, page: OpenedPage) -> FoundForum | None:
        """Return the list of a thread: a page that it links to, and that links to it; else the first that lists threads, as old
        threads are not on the first pages; else the boards of the page at the root of its address.
        """
        here = urldefrag(page.url).url
        all_upwards = _upwards(page)
        upwards = all_upwards[:_UPWARDS]
        for url in upwards:
            above = await self.page(url)
            group = next((one for one in link_groups(above) if here in one.urls), None) if above is not None else None
            if above is not None and group is not None and group.size() >= _HELD * above.text_size:
                index = await self._of_boards(above)
                if index is None or index.listed.page is not above or index.forums is not None:
                    continue
                return FoundForum(group, [page])
        roots = [url for url in all_upwards if here.startswith(url.rstrip("/") + "/")]
        for url in dict.fromkeys([*upwards[:_OLD_UPWARDS], *roots]):
            above = await self.page(url)
            found = await self._of_boards(above) if above is not None else None
            if found is not None:
                return found if found.forums is None else await self._board_with(here, page, found)
        return None

    async def _board_with(self, url: str, page: OpenedPage, index: FoundForum) -> FoundForum:
        """Return the board of an index that lists a thread; the index where the first pages of its boards do not."""
        for board in index.forums.urls[:_BOARDS] if index.forums else ():
            above = await self.page(board)
            group = next((one for one in link_groups(above) if url in one.urls), None) if above is not None else None
            if group is not None:
                return FoundForum(group, [page])
        return index

    async def _read_boards(self, found: FoundForum) -> None:
        """Read the boards of an index, and the boards in them."""
        if found.forums is not None:
            before = len(self._known)
            self._most = before + MOST_BOARDS
            found.boards = await all_boards(found.forums, found.categories, found.listed, self.page, self._known)
            self._most = MOST_PAGES + len(self._known) - before

    async def _read_whole(self, found: FoundForum) -> None:
        """Take the pages that show a whole thread in place of those of single messages, where the list links them."""
        group = whole_threads(found.listed) if any(page.shape == "message" for page in found.threads) else None
        if group is None:
            return
        numbers = _spread(len(group.urls), _THREADS)
        pages = [page for n in numbers if (page := await self.page(group.urls[n])) is not None and page.is_thread]
        whole = [page for page in pages if page.shape is None]
        if any(len(page.posts) > 1 for page in whole):
            found.listed, found.threads = group, whole

    async def _read_own_list(self, found: FoundForum) -> None:
        """Take a longer list that a page with the newest threads links to, where it has these, too."""
        page = found.listed.page
        if next_selector(page.root, page.url, page.next):
            return
        targets = list(dict.fromkeys(url for _, url in page.links()))
        alike = Counter(map(make_of, targets))  # more are links to threads
        for url in [one for one in targets if not is_other_page(one) and alike[make_of(one)] <= _SAMPLES][:_UPWARDS]:
            above = await self.page(url)
            whole = await self._as_list(above) if above is not None else None
            if whole is None or len(whole.listed.urls) <= len(found.listed.urls):
                continue
            same = bases(found.listed.urls) & bases(whole.listed.urls)
            if len(same) >= _HELD * len(found.listed.urls):
                found.listed, found.threads = whole.listed, whole.threads
                return

    async def _read_other_addresses(self, found: FoundForum) -> None:
        """Take the address of a thread that shows more of it, where the list's ends with a view: `/5/l50`, `/5/-100`."""
        urls, tail = found.listed.urls, common_end(found.listed.urls)
        read = sorted((one for one in found.threads if one.url in urls), key=lambda one: -len(one.posts)) if tail else []
        for page in read[:1]:
            base, own = page.url.removesuffix(tail), {post.text for post in page.posts}
            views = [one.removeprefix(base) for _, one in page.links() if one.startswith(base)]
            for end in dict.fromkeys(end for end in views if end[:1] in ("", "/", "?", "&") and not end[1:].isdecimal()):
                other = await self.page(base + end)
                if other is None or not other.is_thread or not own <= {post.text for post in other.posts}:
                    continue
                group = found.listed
                changed = [one.removesuffix(tail) + end for one in urls]
                if (shape := shape_of(changed)) is None or shape.template == "{url}":
                    return  # the file could only name the list's own links
                found.listed = LinkGroup(group.page, group.places, changed, group.titles, group.named, group.shows_posts)
                numbers = _spread(len(changed), _THREADS)
                pages = [one for n in numbers if (one := await self.page(changed[n])) is not None and one.is_thread]
                found.threads = [other, *(one for one in pages if one is not other)]
                return

    async def _read_more(self, found: FoundForum) -> None:
        """Read some more threads, including those with the longest rows: rows of long threads have links to their pages."""
        known = {one.url for one in found.threads}
        sizes = sorted(
            zip(found.listed.rows(), found.listed.urls, strict=True), key=lambda one: -found.listed.page.tree.size(one[0])
        )
        urls = [found.listed.urls[n] for n in _spread(len(found.listed.urls), _THREADS)] + [url for _, url in sizes[:2]]
        for url in dict.fromkeys(urls):
            if len(found.threads) >= _THREADS + 1:
                break
            if url not in known and (page := await self.page(url)) is not None and page.is_thread:
                found.threads.append(page)

    async def _read_on(self, found: FoundForum) -> None:
        """Read the second pages of a few threads, whose posts show the order: older or newer than those of the first page. Where
        no thread read so far has a second page, try some more, those whose rows have the highest numbers first.
        """
        for page in found.threads:
            if len(found.following) < _FOLLOWED:
                await self._follow(found, page)
        known = {one.url for one in found.threads}
        rows = zip(found.listed.rows(), found.listed.urls, strict=True)
        others = sorted((-_highest(found.listed, row), url) for row, url in rows if url not in known)
        for _, url in others[:_MORE_SAMPLES]:
            if found.following:
                break
            other = await self.page(url)
            if other is not None and other.is_thread and await self._follow(found, other):
                found.threads.append(other)

    async def _follow(self, found: FoundForum, page: OpenedPage) -> bool:
        """Read the second page of a thread; return True if there is one."""
        selector = next_selector(page.root, page.url, page.next) or numbered_selector(page.root, page.url, -1)
        url = leads_to(selector, page.root, page.base) if selector else None
        if url and url != page.url and (second := await self.page(url)) is not None and second.is_thread:
            found.following[page.url] = second
            return True
        return False


def _highest(group: LinkGroup, row: int) -> int:
    """Return the highest number in a row next to its title: of replies, or of views."""
    tree = group.page.tree
    alone = (_ALONE.match(tree.string(i)) for i in range(row, tree.end[row]) if 0 < tree.size(i) <= _LONGEST_COUNT)
    return max((int(re.sub(r"\D", "", match[1])) for match in alone if match), default=0)


def _spread(count: int, most: int) -> list[int]:
    """Return at most `most` numbers below `count`, spread evenly."""
    return sorted({min(count - 1, (2 * n + 1) * count // (2 * most)) for n in range(most)})


def _upwards(page: OpenedPage) -> list[str]:
    """Return links that may lead to the list that a thread is in: links before its first post, the last ones first."""
    first = min(block.start for block in page.learned.fields.found.blocks) if page.learned else len(page.tree)
    links = [url for i, url in page.links() if i < first and url not in page.pages]
    root = urljoin(page.url, "/")
    return list(dict.fromkeys([*reversed(links), *([root] if root != urldefrag(page.url).url else [])]))
