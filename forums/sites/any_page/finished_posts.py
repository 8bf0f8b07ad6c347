"""Final form of posts: numbered, with absolute addresses, and unescaped text where a site shows its source."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urljoin

import msgspec

from forums.sites.reading.html_text import text_of

from .records import SeenPost

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
