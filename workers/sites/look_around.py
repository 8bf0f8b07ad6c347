"""Looking at an unknown forum: its front page, one forum, up to three threads, as politely as a crawl."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from parsel import Selector

from .draft import Guessed
from .fetch import FetchFailed, Visitor
from .reading import ListedForum
from .survey import Links, Posts, links_of, next_link, posts_of, second_page, texts_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.http import TextResponse

_KINDS, _FORUMS, _THREADS = 3, 3, 3  # kinds of links that may lead to forums; pages of each; threads looked at


async def look_around(visitor: Visitor, front: TextResponse) -> Guessed | None:
    """What could be guessed; None where no link of the front page leads to a page with threads."""
    for forums, number in _worth_a_look(links_of(front)):
        listed = await _get(visitor, forums.urls[number])
        kinds = sorted(links_of(listed, forums), key=lambda one: -one.rank) if listed else []
        threads = next((one for one in kinds if one.rows), None)
        if listed is None or threads is None:
            continue
        seen = [page for page in [await _get(visitor, url) for url in threads.urls[:_THREADS]] if page]
        posts, page = _most(seen)
        list_next, thread_next = next_link(listed), next_link(page) if page else None
        path = urlsplit(front.url).path or "/"
        return Guessed(
            index_path=path,
            forums=forums,
            list_pages=_template(listed, forums, forums.ids[number], "forum"),
            threads=threads,
            thread_pages=_thread_pages(threads, page),
            posts=posts,
            list_next=list_next or thread_next,
            thread_next=thread_next or list_next,
            list_texts=texts_of(listed, threads.rows),
            thread_texts=texts_of(page, posts.rows, posts.body) if posts and page else (),
        )
    return None


def _worth_a_look(kinds: list[Links]) -> Iterator[tuple[Links, int]]:
    """Links to try, as their kind and number, the likeliest kind first; the first of a kind may be a category."""
    for kind in sorted(kinds, key=lambda one: one.rank)[:_KINDS]:
        for number in range(min(_FORUMS, len(kind.urls))):
            yield kind, number


def guessed_forums(front: TextResponse, guessed: Guessed | None) -> tuple[ListedForum, ...]:
    """The forums that the front page links to, with their links' texts."""
    if guessed is None or guessed.forums is None:
        return ()
    found: dict[str, ListedForum] = {}
    for link in Selector(text=front.text, type="html").css("a[href]"):
        match = re.search(guessed.forums.id_regex(whole=True), unquote(link.attrib["href"]))
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


def _most(pages: list[TextResponse]) -> tuple[Posts | None, TextResponse | None]:
    """The posts of the page that has most of them."""
    read = [(posts, page) for page in pages if (posts := posts_of(page, *(other for other in pages if other is not page)))]
    return max(read, key=lambda one: one[0].count, default=(None, None))


def _thread_pages(threads: Links, page: TextResponse | None) -> str:
    if threads.has_slug or threads.mark != threads.before or page is None:
        return "{url}"  # the thread's own address, which has more in it than its id
    own = next((one for one, url in zip(threads.ids, threads.urls, strict=True) if url == page.url), threads.ids[0])
    return _template(page, threads, own, "thread")


def _template(page: TextResponse, links: Links, own: str, name: str) -> str:
    """The url of a page of it: numbered where a link to the second page shows how."""
    first = f"{links.before}{own}{links.after}"
    template = f"{links.before}{{{name}{':path' if links.has_slash else ''}}}{links.after}"
    numbered = second_page(page)
    if numbered and unquote(numbered).startswith(first):
        return unquote(numbered).replace(first, template, 1)
    return template
