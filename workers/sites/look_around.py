"""Looking at an unknown forum: its front page, one forum, up to three threads, as politely as a crawl."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from parsel import Selector

from .draft import Guessed
from .fetch import FetchFailed, Visitor
from .reading import ListedForum
from .survey import Links, Posts, links_of, posts_of, second_page

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrapy.http import TextResponse

_FORUMS, _THREADS = 3, 3  # pages looked at


async def look_around(visitor: Visitor, front: TextResponse) -> Guessed | None:
    """What could be guessed; None where no link of the front page leads to a page with threads."""
    for forums in links_of(front)[:_FORUMS]:
        listed = await _get(visitor, forums.urls[0])
        threads = next((one for one in links_of(listed, forums) if one.rows), None) if listed else None
        if listed is None or threads is None:
            continue
        seen = [page for page in [await _get(visitor, url) for url in threads.urls[:_THREADS]] if page]
        posts, page = _most(seen)
        path = urlsplit(front.url).path or "/"
        return Guessed(
            index_path=path,
            forums=forums,
            list_pages=_template(listed, forums, forums.ids[0], "forum"),
            threads=threads,
            thread_pages=_thread_pages(threads, page),
            posts=posts,
        )
    return None


def guessed_forums(front: TextResponse, guessed: Guessed | None) -> tuple[ListedForum, ...]:
    """The forums that the front page links to, with their links' texts."""
    if guessed is None or guessed.forums is None:
        return ()
    found: dict[str, ListedForum] = {}
    for link in Selector(text=front.text, type="html").css("a[href]"):
        match = re.search(guessed.forums.id_regex(whole=True), link.attrib["href"])
        name = " ".join(link.xpath("string()").get("").split())
        if match and name and match[1] not in found:
            found[match[1]] = ListedForum(id=match[1], name=name)
    return tuple(found.values())


async def _get(visitor: Visitor, url: str) -> TextResponse | None:
    try:
        page = await visitor.get(url)
    except FetchFailed:
        return None
    return page if page.status == 200 else None


def _most(pages: Iterable[TextResponse]) -> tuple[Posts | None, TextResponse | None]:
    """The posts of the page that has most of them."""
    read = [(posts, page) for page in pages if (posts := posts_of(page))]
    return max(read, key=lambda one: one[0].count, default=(None, None))


def _thread_pages(threads: Links, page: TextResponse | None) -> str:
    if threads.has_slug or threads.mark != threads.before or page is None:
        return "{url}"  # the thread's own address, which has more in it than its id
    own = next((one for one, url in zip(threads.ids, threads.urls, strict=True) if url == page.url), threads.ids[0])
    return _template(page, threads, own, "thread")


def _template(page: TextResponse, links: Links, own: str, name: str) -> str:
    """The url of a page of it: numbered where a link to the second page shows how."""
    first = f"{links.before}{own}{links.after}"
    numbered = second_page(page)
    if numbered and numbered.startswith(first):
        return numbered.replace(first, f"{links.before}{{{name}}}{links.after}", 1)
    return f"{links.before}{{{name}}}{links.after}"
