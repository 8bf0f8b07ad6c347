"""Repeated blocks other than posts: rows of a list of threads or forums, which have an author and a date each as posts have
(their texts are short, or each row has a heading that links to another page), forms, news.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from urllib.parse import urljoin, urlsplit

from forum_reader.dates.dates_in_text import spotted
from forum_reader.fields import post_marks
from forum_reader.page.page_address import host_of
from forum_reader.page.page_tree import PageTree, Range, are_forms
from forum_reader.page.records import SeenLink

from .checks import is_complete
from .repeated_blocks import Block
from .row_links import LEAST_ROWS, links_of, rows_of, suggests_threads
from .structure import PostPattern

_LEAST_TITLED = 3
_TITLED = 0.8  # of the blocks have different titles, where blocks are many
_TITLES = 0.4  # of the blocks: some lists have two for each thread
_LONGEST_TITLE = 250
_NUMBER = re.compile(r"\W*[^\W\d_]+\W*\d+(?:\W+[^\W\d_]+\W+\d+)?\W*")  # `Reply #3`, `message 48211`, `post #3 of 23`
_MOST_LINKS = 3  # of a block that is a row
_SHORT = 60  # characters of a post that may be a row
_COUNT = re.compile(r"[^\W\d_]{0,20}[\s:：]*\d[\d.,kKM万 ]*[^\W\d_]{0,20}")  # `28 Replies`, `Views: 1,974`
_EASTERN = re.compile("[\u3040-\ud7ff]")
_HEADINGS = frozenset({"h1", "h2", "h3", "h4"})


def are_listed(learned: PostPattern, tree: PageTree) -> bool:
    """Return True if the learned posts are short texts in the rows of a list: numbers of answers and views, a name."""
    posts, fields = learned.posts, learned.fields
    if sorted(len(post.text) for post in posts)[len(posts) // 2] > 2 * _SHORT:
        return False
    sizes = sorted(_prose(post.text) for post in posts)
    if sizes[len(sizes) // 2] > _SHORT:
        return False
    links = links_of(tree)
    if len(links) < _LEAST_TITLED:
        return False
    title, text = sorted(map(tree.size, links))[len(links) // 2], sizes[len(sizes) // 2]
    titles = {tree.string(i) for i in links}
    of_threads = suggests_threads(tree, links)
    sure = of_threads is False or (of_threads and len(links) >= LEAST_ROWS)
    if not sure and len(links) > _MOST_LINKS * len(posts):
        return False  # links to the author's other posts
    if not sure and 2 * title < text and 2 * sum(post.text.partition("\n")[0] in titles for post in posts) < len(posts):
        return False
    blocks, rows = [(block.start, block.end) for block in fields.paths.blocks], rows_of(tree, links)
    return _overlapping(rows, blocks) >= _TITLED * len(rows) and _overlapping(blocks, rows) >= _TITLES * len(blocks)


def _prose(text: str) -> int:
    """Return the number of characters of a text's lines that are neither a date nor a number with its label; a Chinese character,
    which is a word, counts as two.
    """
    lines = (line for line in text.splitlines() if line and not _COUNT.fullmatch(line) and not spotted(line))
    return sum(len(line) + len(_EASTERN.findall(line)) for line in lines)


def _overlapping(ranges: Sequence[Range], others: Sequence[Range]) -> int:
    """Count the ranges that overlap one of the others: more others begin before the range's end than end before its beginning."""
    starts, ends = sorted(start for start, _ in others), sorted(end for _, end in others)
    return sum(bisect_left(starts, end) > bisect_right(ends, start) for start, end in ranges)


def titled_rows(learned: PostPattern, tree: PageTree, url: str, base: str = "") -> tuple[SeenLink, ...]:
    """Return the titles of rows with more text than a title, as a forum's description, a thread's beginning or a whole article:
    in nearly each block a heading that links to another page, with a different text and target. Empty where blocks are posts:
    their headings link to the author or to the post, or are the same in all.
    """
    paths = learned.fields.paths
    found = [_title_of(tree, block, url, base or url) for block in paths.blocks]
    rows = tuple(row for row in found if row is not None)
    different = min(len({row.title for row in rows}), len({row.url for row in rows}))
    return rows if different >= max(_LEAST_TITLED, _TITLED * len(paths.blocks)) else ()


def _title_of(tree: PageTree, block: Block, url: str, base: str) -> SeenLink | None:
    """Return the first link of a block in a heading, to another page, and neither to the author nor to the block itself."""
    anchors = _anchors(tree, block.start, block.end)
    for i in range(block.start, block.end):
        if tree.tag[i] != "a" or tree.tag[tree.parent[i]] not in _HEADINGS or not 0 < tree.size(i) < _LONGEST_TITLE:
            continue
        href, text = tree.attributes[i].get("href", ""), tree.string(i)
        is_own = href.rpartition("#")[2] in anchors or _NUMBER.fullmatch(text) is not None
        if not is_own and (target := _target(href, url, base)):
            return SeenLink(url=target, title=text)
    return None


def _anchors(tree: PageTree, start: int, end: int) -> set[str]:
    """Return the ids and names in a block, by which a link refers to a part of it."""
    first = start - 1 if start and tree.end[start - 1] == start else start  # <a name> before it
    return {name for i in range(first, end) for key in ("id", "name") if (name := tree.attributes[i].get(key))}


def _target(href: str, url: str, base: str) -> str | None:
    """Resolve a link to another page of the site; None for profiles, other sites and the page itself."""
    try:
        target, here = urljoin(base, href).partition("#")[0], url.partition("#")[0]
        parts, own = urlsplit(target), urlsplit(here)
    except ValueError:
        return None
    is_elsewhere = host_of(parts) == host_of(own) and (parts.path, parts.query) != (own.path, own.query)
    return target if href and is_elsewhere and not post_marks.is_profile_link(href) else None


_LEAST_ALONE = 0.1  # of dates and authors


def are_no_posts(learned: PostPattern, *, of_forum: bool) -> bool:
    """Return True if the blocks are not posts, as where hardly any date or author has one to itself. `of_forum`: forum software
    made the page.
    """
    return learned.fields.found.alone < _LEAST_ALONE or _are_in_forms(learned) or (not of_forum and _are_unsigned(learned))


def _are_in_forms(learned: PostPattern) -> bool:
    """Return True if the blocks are parts of a form page: some of few blocks have fields, and lack an author or a date."""
    tree = learned.fields.paths.tree
    return not is_complete(learned.posts) and are_forms(tree, [(block.start, block.end) for block in learned.fields.paths.blocks])


def _are_unsigned(learned: PostPattern) -> bool:
    """Return True if no block has an author or an id: news, events."""
    return all(post.author is None and post.id is None for post in learned.posts)
