"""Titles of threads in lists and in threads: equal, cut, or with numbers around them."""

from __future__ import annotations

from .link_groups import ANSWER, LinkGroup
from .page_sample import OpenedPage

_MOSTLY = 0.7
_HELD = 0.5
_LEAST_LETTERS = 5  # of a title that identifies a thread
_TITLE, _LEAST_TITLE = 40, 6  # letters of a title that distinguish it


def is_of(group: LinkGroup, lists: list[LinkGroup]) -> bool:
    """Return True if threads of a page are those of lists that it leads to: the newest of all forums. Lists that have the same
    threads are one list in different orders, and so is a list that has all of the page's.
    """
    titles, others = titles_of(group), [titles_of(one) for one in lists]
    if any(shared(titles, one) >= _MOSTLY * max(len(one), len(titles)) for one in others):
        return False
    if any(shared(one, other) > _HELD * len(one) for n, one in enumerate(others) for other in others[:n]):
        return False
    return any(shared(titles, one) for one in others)


def titles_of(group: LinkGroup) -> list[str]:
    """Return the letters of the titles of a list's links, each once."""
    found = (_letters(ANSWER.sub("", title)) for title in group.titles)
    return sorted({letters for letters in found if len(letters) >= _LEAST_LETTERS})


def shared(some: list[str], others: list[str]) -> int:
    """Count the titles that are among the others, whole or cut."""
    return sum(any(one.startswith(other) or other.startswith(one) for other in others) for one in some)


def is_titled(page: OpenedPage, title: str) -> bool:
    """Return True if a page has its link's title, or the beginning of it; a link may also have a number or a count."""
    words = _letters(title)
    shown = page.frame.title or ""
    headings = ["".join(map(str, one.itertext())) for one in page.root.iter("h1", "h2", "h3")]
    heads = [_letters(head) for head in (shown, page.root.findtext(".//title") or "", *headings)]
    whole = any(words[:_TITLE] in head for head in heads) if words else False
    return whole or any(len(head) >= _LEAST_TITLE and head in words and len(head) >= _MOSTLY * len(words) for head in heads)


def _letters(text: str) -> str:
    return "".join(char for char in text.lower() if char.isalnum())
