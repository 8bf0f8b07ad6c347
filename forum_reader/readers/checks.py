"""Plausibility of the posts that a reader found (grades by which the readers of a page are compared), and their final form."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from urllib.parse import urljoin

import msgspec

from forum_reader.page.records import SeenPost
from forum_reader.reading.html_text import text_of

_MOST_PICTURES = 0.8  # of the posts of a page
_HELD = 0.2  # of a page's words outside of links: posts with this share are not a box at its side
_NEARLY_ALL = 0.9  # of the words: no post is left out
_NUMBER = re.compile(r"(?<=_)(?=[a-z]{0,8}\d{1,8}[a-z])[0-9a-z]{6,8}$|(?<!_t)\d+")  # or of Reddit: `t1_o8ng75g`
_FILLED = ("id", "author", "author_url", "published", "edited", "url")


def grade(posts: Sequence[SeenPost], words: int) -> float:
    """Grade posts from 0 to 1. `words`: characters of the page outside of links. Good posts hold most of them, each has an
    author, a date and a text that no other post has, and the dates are in order.
    """
    count = len(posts)
    texts = [post.text for post in posts if post.text]
    if not texts:
        return 0.0
    authors = sum(post.author is not None for post in posts) / count
    dates = [post.published for post in posts if post.published is not None]
    complete = (0.3 + 0.7 * authors) * (0.3 + 0.6 * len(dates) / count + 0.1 * order(dates))
    share = min(1.0, sum(map(len, texts)) / max(1, words))
    return float(share**0.6 * (len(texts) / count) * (len(set(texts)) / len(texts)) * complete)


def order(dates: Sequence[datetime]) -> float:
    """Return the share of neighbours that follow each other in one direction; 0 for no dates."""
    if len(dates) < 2:
        return float(len(dates))
    ups = sum(a <= b for a, b in itertools.pairwise(dates)) / (len(dates) - 1)
    return max(ups, 1 - ups)


def is_complete(posts: Sequence[SeenPost], *, pictures: bool = False) -> bool:
    """Return True if nearly each post has a text, an author and a date. `pictures`: some may have no text."""
    missing = sum((post.author is None) + (post.published is None) for post in posts)
    without_text = sum(not post.text for post in posts)
    if pictures and without_text <= _MOST_PICTURES * len(posts):
        without_text = 0
    return bool(posts) and missing + without_text <= 0.1 * len(posts)


def has_all_posts(posts: Sequence[SeenPost], names: Collection[str], words: int) -> bool:
    """Return True if these are all posts of a page, so that no other reader has to run: they hold nearly all of its words, or
    many of them, and no form of the elements' ids (`names`) that contains a post's id (`post-12`) is more frequent than posts.
    """
    held = sum(len(post.text) for post in posts) / words
    if not _HELD <= held < _NEARLY_ALL:
        return held >= _HELD
    ids = {post.id for post in posts if post.id}
    kinds: Counter[str] = Counter()
    with_id: Counter[str] = Counter()
    for name in names:
        if numbers := _NUMBER.findall(name):
            kind = _NUMBER.sub("#", name)
            kinds[kind] += 1
            with_id[kind] += numbers[-1] in ids
    most = max((kinds[kind] for kind, count in with_id.items() if count > 0.5 * len(ids)), default=0)
    return 0 < most <= len(posts)


def agreement(ours: Sequence[SeenPost], others: Sequence[SeenPost]) -> float:
    """Return the share of posts that both lists have, of the posts in either; posts are compared by the beginning of their
    words.
    """
    if not ours or not others:
        return 0.0
    keys = {key for post in ours if (key := _key(post))}
    both = sum(_key(post) in keys for post in others if post.text)
    return both / max(1, max(sum(bool(post.text) for post in ours), sum(bool(post.text) for post in others)))


def completed(ours: Sequence[SeenPost], others: Sequence[SeenPost]) -> tuple[SeenPost, ...]:
    """Fill in fields that our posts lack from the same posts of another reader."""
    known: dict[str, SeenPost | None] = {}
    for post in others:
        if key := _key(post):
            known[key] = None if key in known else post  # two posts alike cannot be assigned
    by_id = {post.id: post for post in others if post.id}
    found = []
    for post in ours:
        other = known.get(_key(post))
        if other is None and post.id in by_id and by_id[post.id].author in (post.author, None):
            other = by_id[post.id]  # its text ends elsewhere
        more = (
            {}
            if other is None
            else {name: value for name in _FILLED if getattr(post, name) is None and (value := getattr(other, name))}
        )
        found.append(msgspec.structs.replace(post, **more) if more else post)
    return tuple(found)


def _key(post: SeenPost) -> str:
    return "".join(post.text[:400].split())[:60].lower()


def with_their_posts(posts: Sequence[SeenPost], comments: Collection[int]) -> tuple[SeenPost, ...]:
    """Return the posts with their comments. `comments`: their indexes in `posts`; a comment without a known post goes to the
    first.
    """
    if not comments:
        return tuple(posts)
    kept = [n for n in range(len(posts)) if n not in comments]
    if not kept:
        return tuple(posts)
    places = {post_id: n for n in kept if (post_id := posts[n].id) is not None}
    above: dict[int, list[SeenPost]] = {n: [] for n in kept}
    for n in sorted(comments):
        above[places.get(posts[n].parent or "", kept[0])].append(posts[n])
    return tuple(msgspec.structs.replace(posts[n], comments=tuple(above[n])) for n in kept)


_ESCAPED = re.compile(r"<(p|div|blockquote|span|table|ul|ol)\b[^<>]*>.*</\1>", re.DOTALL | re.IGNORECASE)


def finished(posts: Iterable[SeenPost], url: str, *, numbered: bool = True) -> Iterable[SeenPost]:
    """Yield the posts of the page at `url` in their final form; comments on posts have no numbers."""
    for number, post in enumerate(posts, 1):
        yield msgspec.structs.replace(
            post,
            text=_unescaped(post.text),
            number=post.number or number if numbered else None,
            url=_absolute(url, post.url),
            author_url=_absolute(url, post.author_url),
            comments=tuple(finished(post.comments, url, numbered=False)),
        )


def _unescaped(text: str) -> str:
    """Unescape the text of a post that the site shows as its HTML source, as some do after a move to another software."""
    return text_of(text) or "" if text.startswith("<") and _ESCAPED.match(text) else text


@lru_cache(maxsize=1024)
def _absolute(base: str, href: str | None) -> str | None:
    if not href:
        return None
    href = href.strip()
    try:
        return href if href.startswith(("https://", "http://")) else urljoin(base, href)
    except ValueError:
        return None
