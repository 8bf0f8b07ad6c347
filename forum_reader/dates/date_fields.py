"""Field of dates that reads the dates which are known already: from text, from an attribute, or by a form of strptime."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from forum_reader.definition.selectors import compiled
from forum_reader.draft.element_selectors import as_value, attribute_of, own_text_of
from forum_reader.draft.page_sample import OpenedPage
from forum_reader.fields.post_marks import DATE_DATA
from forum_reader.reading.parse_body import read_at

from .language import known_language
from .reader import DateReader

_ATTRIBUTES = ("title", *DATE_DATA, "content", "aria-label")  # visible text comes first, unlike in any_page/post_marks.py
_NUMERIC = r"(\d{1,4}[./-]\d{1,2}[./-]\d{1,4}(?:\s*\(\w{1,3}\))?(?:(?:,?\s+|[.T_-])\d{1,2}:\d\d(?::\d\d)?(?:\s*[AaPp][Mm])?)?)"
_LABELLED = r"^[^:\d]{1,30}:\s*(.+)$"
_ORDERS = (("%d", "%m", "%Y"), ("%m", "%d", "%Y"), ("%Y", "%m", "%d"), ("%d", "%m", "%y"), ("%m", "%d", "%y"))
_TIMES = ("", " %H:%M", ", %H:%M", " %H:%M:%S", ", %H:%M:%S", " %I:%M %p", ", %I:%M %p")
_EXACT = 1e-4

Wanted = Sequence[tuple[OpenedPage, Sequence[tuple[Any, datetime | None]]]]
"""Pages, with their rows and the date of each."""


def date_field(selectors: list[str], wanted: Wanted) -> Any:
    """Return the field's value in a site file. It includes a numeric form where the dates could be read in another way."""
    best, best_right = as_value(selectors), -1.0
    for attribute in (None, *_ATTRIBUTES):
        tried = selectors if attribute is None else [attribute_of(one, attribute) for one in selectors]
        right = _right(tried[0], wanted, ())
        if right > best_right:
            best, best_right = as_value(tried), right
    total = sum(moment is not None for _, rows in wanted for _, moment in rows)
    own = [own_text_of(one) for one in selectors]  # `<div>3 days ago <a>ida</a></div>`
    if best_right < total and (right := _right(own[0], wanted, ())) > best_right:
        best, best_right = as_value(own), right
    if best_right >= total:
        return best
    for regex in (_LABELLED, _NUMERIC):  # a label, or other words and numbers, stand around the date
        if _right(selectors[0], wanted, (), regex) >= total:
            return {"select": as_value(selectors), "regex": regex}
    for form in _forms():
        if _right(selectors[0], wanted, (form,), _NUMERIC) >= total:
            return {"select": as_value(selectors), "regex": _NUMERIC, "formats": [form]}
    return best


def _forms() -> Iterator[str]:
    for order, mark, time in itertools.product(_ORDERS, "./-", _TIMES):
        yield mark.join(order) + time


def moves(field: Any, rows: Sequence[Any], page: OpenedPage) -> bool:
    """Return True if some dates are relative ("3 days ago"), so that a later reading gives another time."""
    select = field["select"] if isinstance(field, dict) else field
    selector: str = select if isinstance(select, str) else select[0]
    reader = _reader(page)
    read = [reader.read(text) for row in rows if (text := _text(selector, row))]
    return any(moment is not None and not fixed for moment, fixed in read)


def _reader(page: OpenedPage) -> DateReader:
    return DateReader(read_at(page.response), language=known_language(page.frame.language or ""), time_zone="UTC")


def _text(selector: str, row: Any) -> str | None:
    """Return the text that is read as a date: an element's `datetime` before its text."""
    found = compiled("html", selector)(row)
    return (
        (found[0] if isinstance(found[0], str) else found[0].get("datetime") or "".join(found[0].itertext())) if found else None
    )


def _right(selector: str, wanted: Wanted, formats: tuple[str, ...], regex: str | None = None) -> float:
    """Count the rows whose date is right to the day, plus a little for each that is right to the minute, unlike "2 days ago"."""
    import regex as expressions

    right = 0.0
    for page, rows in wanted:
        reader = _reader(page)
        for row, moment in rows:
            text = _text(selector, row) if moment is not None else None
            if text is None:
                continue
            match = expressions.search(regex, text) if regex else None
            if regex and match is None:
                continue
            read, _ = reader.read(" ".join((match[1] if match else text).split()), formats)
            if read is not None and moment is not None and (off := abs((read - moment).total_seconds())) < 43_200:
                right += 1 + _EXACT * (off < 60)
    return right
