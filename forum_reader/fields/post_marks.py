"""Marks of posts on a page: dates, authors, ids and texts, from each element's attributes and each short text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from forum_reader.dates.dates_in_text import LONGEST, Spotted, machine_date, spotted
from forum_reader.page.page_tree import PageTree

from . import class_words

_MOST_SPACED = 500  # characters of a text with the spaces of its markup
_LEAST_BODY = 15  # characters
_LONGEST_AGE = 30
_AGE = re.compile(r"\d{1,3}\+?\s?[^\W\d_]{1,12}(?:,?\s\d{1,2}\s?[^\W\d_]{1,12})?")
_OF_AGE = re.compile(r"(?:^|[\s_-])(?:age|ago|date|datetime|time|when|posted|created|(?:time)?stamp)(?:$|[\s_-])", re.IGNORECASE)
_DIGIT = re.compile(r"\d")
_TOOLTIPS = ("data-original-title", "data-content", "data-tooltip", "data-tippy-content")
DATE_DATA = ("data-time", "data-timestamp", "data-ts", "data-date", "data-utime", "data-epoch", "data-datetime")
"""Attributes from which scripts of forums read dates."""
_DATE_ATTRIBUTES = ("datetime", *DATE_DATA, "title", "aria-label", *_TOOLTIPS)
_HAVE_DATES = frozenset((*_DATE_ATTRIBUTES, "content"))
_DATE_NAME = re.compile(r"-(?:ts|utc|time|date|created|posted|published)(?:$|-)|(?:time|live|unix)-?stamp|date-?time|created-?at")
_PUBLISHED = frozenset(("datePublished", "dateCreated"))


@dataclass(slots=True)
class Marks:
    """Candidates on a page: dates (element: date), authors and ids (elements)."""

    dates: dict[int, Spotted] = field(default_factory=dict)
    authors: list[int] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    bodies: list[int] = field(default_factory=list)
    """Elements whose class marks a text, without elements that hold another one."""


def find_marks(tree: PageTree) -> Marks:
    """Collect the marks of a page from each element's attributes and each short text."""
    marks = Marks()
    _date_texts(tree, marks)
    for i, attributes in enumerate(tree.attributes):
        if not attributes:
            continue
        _date_attribute(i, attributes, marks)
        name = attributes.get("id")
        if name and name[-1].isdigit():
            marks.ids.append(i)
        size = tree.size(i)
        if 0 < size <= 60 and _is_author(attributes):
            marks.authors.append(i)
        if size >= _LEAST_BODY and _is_body(attributes):
            if marks.bodies and i < tree.end[marks.bodies[-1]]:
                marks.bodies.pop()
            marks.bodies.append(i)
    return marks


def _is_author(attributes: dict[str, str]) -> bool:
    href = attributes.get("href")
    if href is not None and class_words.is_profile_link(href):
        return True
    if "author" in attributes.get("itemprop", "") or "author" in attributes.get("rel", ""):
        return True
    classes = attributes.get("class")
    return bool(classes) and class_words.suggests_author(classes or "")


def _is_body(attributes: dict[str, str]) -> bool:
    classes = attributes.get("class")
    return bool(classes) and class_words.suggests_body(classes or "") and not class_words.suggests_quote(classes or "")


def _age(tree: PageTree, i: int, text: str) -> Spotted | None:
    """Return the date of an age without "ago" (`3 hours`), in an element whose tag or class marks a date."""
    if len(text) > _LONGEST_AGE or not _AGE.fullmatch(text.strip()):
        return None
    names = (tree.attributes[j].get("class", "") for j in (i, tree.parent[i]) if j >= 0)
    return spotted(f"{text.strip()} ago") if tree.tag[i] == "time" or any(map(_OF_AGE.search, names)) else None


def _date_texts(tree: PageTree, marks: Marks) -> None:
    known: dict[str, Spotted | None] = {}
    for k, text in enumerate(tree.texts):
        if len(text) > LONGEST and (len(text) > _MOST_SPACED or len(text := " ".join(text.split())) > LONGEST):
            continue
        if text not in known:
            known[text] = spotted(text)
        owner = tree.owner[k]
        date = known[text] or _age(tree, owner, text)
        if date is None:
            continue
        if date.precision < 4:  # the time, or the year, may stand in the next element
            around = tree.parent[owner] if tree.size(owner) == len(text) else owner
            if around >= 0 and tree.size(around) <= 80:
                richer = spotted(tree.string(around))
                date = richer if richer is not None and richer.precision > date.precision else date
        if date.precision > 1 and (owner not in marks.dates or marks.dates[owner].precision < date.precision):
            marks.dates[owner] = date


@lru_cache(maxsize=1024)
def suggests_date(name: str) -> bool:
    """Return True if an attribute's name marks a date."""
    return bool(_DATE_NAME.search(name))


def _date_attribute(i: int, attributes: dict[str, str], marks: Marks) -> None:
    names: Sequence[str] = _DATE_ATTRIBUTES
    if _HAVE_DATES.isdisjoint(attributes):
        names = [name for name in attributes if name.startswith("data-") and suggests_date(name)]
        if not names:
            return
    elif attributes.get("itemprop") in _PUBLISHED:
        names = ("content", *names)
    for name in names:
        value = attributes.get(name)
        if (
            value
            and 5 < len(value) <= 60
            and _DIGIT.search(value)
            and (date := machine_date(value)) is not None
            and date.precision >= 3
        ):
            known = marks.dates.get(i)  # `2 years ago` is less than any day
            if known is None or known.back is not None or known.precision < date.precision or name in ("datetime", "content"):
                marks.dates[i] = date
            return
