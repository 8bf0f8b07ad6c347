"""The post of a thread without answers: nothing repeats, so it is the text that its class calls one, next to a name and a date,
on a page that speaks of replies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from . import class_words
from .page_tree import PageTree
from .post_calendar import Calendar
from .post_marks import Marks
from .records import SeenPost

_LEVELS = 6  # of elements around the text, that hold its author and date
_SHARE = 0.4  # of the page's words outside of links, that are the post's
_LEAST = 20  # characters
_A_DAY = 3  # precision of a date
_LONGEST_NAME = 60
_LONGEST_CUE = 60
_TEXT_PROPERTIES = frozenset({"text", "articleBody"})
_REPLIES = re.compile(
    r"\brepl(?:y|ies|ied)\b|\banswers?\b|\brespon(?:d|ses?)\b|antwort|répon|respuesta|respond|risp(?:ondi|ost)|resposta|"
    r"reageer|reactie|\bsvar|odpowied|odpověd|ответ|відпов|yanıt|cevap|回复|回覆|回應|回帖|跟帖|返信|レス|답글|댓글|"
    r"trả lời|balas",
    re.IGNORECASE,
)


def lone_post(tree: PageTree, marks: Marks, calendar: Calendar) -> SeenPost | None:
    """The only post of a page; None where the page does not look like a thread."""
    body = _body(tree)
    if body is None or not any(len(text) <= _LONGEST_CUE and _REPLIES.search(text) for text in tree.texts):
        return None
    dates = [i for i, date in marks.dates.items() if date.precision >= _A_DAY]
    around = body
    for _ in range(_LEVELS):
        around = tree.parent[around]
        if around < 0:
            return None
        author, date = _nearest(tree, marks.authors, around, body), _nearest(tree, dates, around, body)
        if author is not None and date is not None:
            break
    else:
        return None
    (published,) = calendar.read([marks.dates[date]])
    if published is None:
        return None
    href = tree.attributes[author].get("href")
    return SeenPost(
        text=tree.joined(tree.first_text[body], tree.last_text[body], []),
        author=tree.string(author),
        author_url=href if href and class_words.is_profile_link(href) else None,
        published=published,
    )


def _body(tree: PageTree) -> int | None:
    """The element with the most words of those whose class or property says that it holds a text."""
    best, most = None, 0
    for i, attributes in enumerate(tree.attributes):
        if not attributes:
            continue
        names = f"{attributes.get('class', '')} {attributes.get('id', '')}"
        if class_words.says_body(names) or attributes.get("itemprop") in _TEXT_PROPERTIES:
            size = _words(tree, i)
            if size >= most:  # the inner one of two that hold the same
                best, most = i, size
    whole = tree.chars[-1] - tree.link_chars[-1]
    return best if best is not None and most >= max(_LEAST, _SHARE * whole) else None


def _words(tree: PageTree, i: int) -> int:
    start, end = tree.first_text[i], tree.last_text[i]
    return tree.chars[end] - tree.chars[start] - (tree.link_chars[end] - tree.link_chars[start])


def _nearest(tree: PageTree, elements: Iterable[int], around: int, body: int) -> int | None:
    """Of elements within `around` the last one before the body, else the first one behind it."""
    outside = [
        i
        for i in elements
        if around <= i < tree.end[around]
        and not body <= i < tree.end[body]
        and not i <= body < tree.end[i]
        and 0 < tree.size(i) <= 2 * _LONGEST_NAME
    ]
    before = [i for i in outside if i < body]
    return max(before) if before else min(outside, default=None)
