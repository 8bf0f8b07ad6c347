"""Repeated blocks other than posts: rows with several people, forms, members, buttons, news."""

from __future__ import annotations

import re
from collections import Counter

from forum_reader.page.frames import are_forms

from .checks import is_complete
from .list_rows import prose_lines
from .row_links import LEAST_ROWS
from .structure import PostPattern

_MOST_IN_ONE = 4  # authors and dates of a post
_NEARLY_ONE = 0.6  # of the links to people
_DIGITS = re.compile(r"\d+")
_LEAST_ALONE = 0.1  # of dates and authors
_RANKS = 0.5  # of the rows of members: so few differ
_SHORT = 60  # characters of a member's row


def are_no_posts(learned: PostPattern, *, of_forum: bool) -> bool:
    """Return True if the blocks are not posts. `of_forum`: the page was made by forum software."""
    return (
        _hold_several(learned)
        or _are_in_forms(learned)
        or _are_members(learned)
        or _are_names(learned)
        or (not of_forum and _are_unsigned(learned))
    )


def _hold_several(learned: PostPattern) -> bool:
    """Return True if half of the blocks hold several posts or rows each, or hardly any date or author has a block to itself."""
    paths = learned.fields.paths
    if learned.fields.found.alone < _LEAST_ALONE:
        return True
    several = sum(
        min(len(paths.dates_in(n)), len(paths.authors_in(n))) > _MOST_IN_ONE and not _is_of_one(learned, n)
        for n in range(paths.count)
    )
    return 2 * several >= paths.count


def _is_of_one(learned: PostPattern, number: int) -> bool:
    """Return True if most links to people in a block share a number: a member's profile, mail, and friends."""
    paths = learned.fields.paths
    links = [link for i in paths.authors_in(number) if (link := paths.tree.attributes[i].get("href"))]
    ids = Counter(one for link in links for one in set(_DIGITS.findall(link)))
    return bool(ids) and max(ids.values()) >= _NEARLY_ONE * len(links)


def _are_in_forms(learned: PostPattern) -> bool:
    """Return True if the blocks are parts of a form page: some of few blocks have fields, and lack an author or a date."""
    tree = learned.fields.paths.tree
    return not is_complete(learned.posts) and are_forms(tree, [(block.start, block.end) for block in learned.fields.paths.blocks])


def _are_members(learned: PostPattern) -> bool:
    """Return True if the blocks are rows of a list of members: no name appears twice, and without dates and numbers most rows
    have the same text: a rank.
    """
    posts = learned.posts
    authors = {post.author for post in posts if post.author is not None}
    if len(posts) < LEAST_ROWS or len(authors) < len(posts):
        return False
    texts = Counter("\n".join(prose_lines(post.text)) for post in posts)
    return len(texts) <= _RANKS * len(posts) and max(map(len, texts)) <= _SHORT


def _are_names(learned: PostPattern) -> bool:
    """Return True if half of the texts are only the author's name, or all are by one author and undated: links and buttons."""
    posts = learned.posts
    if 2 * sum(post.text == post.author for post in posts) >= len(posts):
        return True
    return len({post.author for post in posts}) == 1 and all(post.published is None for post in posts)


def _are_unsigned(learned: PostPattern) -> bool:
    """Return True if no block has an author or an id: news, events."""
    return all(post.author is None and post.id is None for post in learned.posts)
