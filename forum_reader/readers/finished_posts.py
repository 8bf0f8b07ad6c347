"""Comments on questions and answers: question-and-answer sites keep comments apart from the posts of a thread."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from urllib.parse import urljoin

import msgspec

from forum_reader.page.records import SeenPost
from forum_reader.reading.html_text import text_of


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


def _absolute(base: str, href: str | None) -> str | None:
    if not href:
        return None
    try:
        return urljoin(base, href.strip())
    except ValueError:
        return None
