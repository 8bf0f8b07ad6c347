"""Id for posts without one on their pages: thread, author, and another constant part of a post."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from forum_reader.dates.language import known_language
from forum_reader.dates.reader import DateReader
from forum_reader.definition.selectors import compiled, is_xpath
from forum_reader.reading.parse_body import read_at

from .element_selectors import xpath_of
from .page_sample import OpenedPage

_TITLE = "substring(normalize-space(//title), 1, 80)"
_LATER = timedelta(days=40)


def made_id(pages: Sequence[tuple[OpenedPage, Sequence[Any]]], authors: list[str], date: Any, body: Any) -> str | None:
    """Return an XPath of title, author and date of a post, as precise as needed to distinguish posts; the first words in place
    of a relative date. None where the first row has no author or date.
    """
    (page, rows), dates = pages[0], _first(date)
    if not authors or dates is None:
        return None
    author = _as_xpath(authors[0], rows[0])
    last = _as_xpath(dates, rows[0])
    if author is None or last is None:
        return None
    words = _as_xpath(_first(body) or "", rows[0])
    beginning = f"substring(normalize-space({words}), 1, 80)" if words else None
    ends = [one for one in (last, f"{last}/@datetime") if _stays(one, rows, page)]
    if beginning:
        ends += [beginning, *(f"concat({one}, '/', {beginning})" for one in ends)]
    ids = [f"(concat({_TITLE}, '/', normalize-space({author}), '/', normalize-space({one})))" for one in ends or [last]]
    return max(ids, key=lambda one: _different_ids(one, pages))


def _different_ids(select: str, pages: Sequence[tuple[OpenedPage, Sequence[Any]]]) -> int:
    """Count the different ids that an XPath finds."""
    return sum(len({compiled("html", select)(row)[0] for row in rows}) for _, rows in pages)


def _first(field: Any) -> str | None:
    """Return the first selector of a field of a site file."""
    select = field.get("select") if isinstance(field, dict) else field
    return select if select is None or isinstance(select, str) else select[0]


def _stays(step: str, rows: Sequence[Any], page: OpenedPage) -> bool:
    """Return True if dates are absolute: read some weeks later, they give the same time."""
    at, language = read_at(page.response), known_language(page.frame.language or "")
    now, later = (DateReader(moment, language=language, time_zone="UTC") for moment in (at, at + _LATER))
    texts = {str(compiled("html", f"(normalize-space({step}))")(row)[0]) for row in rows[:10]}
    return any(texts) and all(now.read(text)[0] == later.read(text)[0] for text in texts)


def _as_xpath(selector: str, row: Any) -> str | None:
    """Return an XPath for a selector's first match in the row; None where it finds nothing."""
    if not selector or not compiled("html", selector)(row):
        return None
    return selector if is_xpath(selector) else f"(./{xpath_of(selector, 'descendant::')})[1]"
