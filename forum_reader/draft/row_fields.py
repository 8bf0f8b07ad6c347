"""Fields of posts in a site file that are tried on rows of several pages: the id, an id made of other fields, and the date."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urljoin

from forum_reader.dates.read_date import DateReader
from forum_reader.definition.selectors import compiled, is_xpath
from forum_reader.fields.date_field import OPENING_HAS_NONE, is_code
from forum_reader.fields.post_marks import DATE_DATA, suggests_date
from forum_reader.reading.parse_body import read_at

from .element_selectors import as_value, attribute_of, class_selector, field_selectors, own_text_of, xpath_of
from .page_sample import OpenedPage
from .thread_rows import PostRows

_ID_NAMES = (
    "id",
    "name",
    "data-id",
    "data-post-id",
    "data-postid",
    "data-message-id",
    "data-comment-id",
    "data-content",
    "href",
    "value",
)
_ID = re.compile(r"(?<![0-9A-Za-z_~.@=-])[_~.@=-]*+([0-9A-Za-z][0-9A-Za-z_~.@=-]*+)/?$")
_NUMBER_AT_END = re.compile(r"(?<!\d)(\d+)/?$")
_LONGEST_ID, _LONGEST_ADDRESS = 200, 400
_LEAST_IDS = 2
_LINKS = 50  # of a row


def id_field(found: Sequence[PostRows]) -> dict[str, Any] | None:
    """Return the field whose attribute is in each row, and different in all rows of all pages. An opening post needs no id."""
    best: tuple[float, dict[str, Any]] | None = None
    for selector, name in _id_places(found):
        select = attribute_of(selector, name)
        for pattern, bonus in ((_NUMBER_AT_END, 0.5), (_ID, 0.0)):
            opening, values = _values(found, select, pattern)
            without = None in opening
            values = values if without else [*opening, *values]
            if len(values) < _LEAST_IDS or None in values or len(set(values)) < len(values):
                continue
            score = bonus - OPENING_HAS_NONE * without + _id_score(selector, name, [value for value in values if value], found)
            if best is None or score > best[0]:
                best = (score, {"select": select, "regex": pattern.pattern})
    return best[1] if best else None


_IN_THREAD = re.compile(r"(?<!\d)(\d+)\D{1,4}(\d+)\D{0,4}$")


def id_in_thread(found: Sequence[PostRows]) -> dict[str, Any] | None:
    """Return the field of a post's number in its thread, where an address in each row has both: `delete_post(1773594240,2)`."""
    rows = max((one.rows for one in found), key=len)
    pairs: dict[tuple[str, str], list[tuple[Any, Any]]] = {}
    for row in (rows[0], rows[-1]):
        for element in list(row.iterdescendants("a"))[:_LINKS]:
            for name in ("href", "onclick"):
                if _IN_THREAD.search((element.get(name) or "")[-_LONGEST_ID:]):
                    pairs.setdefault((name, class_selector(element.getparent()) or ""), []).append((row, element))
    for (name, _), pair in pairs.items():
        for selector in field_selectors(pair, 1):
            of_pages = [[_match(row, attribute_of(selector, name), _IN_THREAD) for row in one.rows] for one in found]
            threads = [{one[1] if one else None for one in numbers} for numbers in of_pages]
            alone = all(len(one) == 1 and None not in one for one in threads) and len(set.union(*threads)) == len(found)
            if alone and all(len({one and one[2] for one in numbers}) == len(numbers) for numbers in of_pages):
                return {"select": attribute_of(selector, name), "regex": r"(\d+)\D*$", "prefix": "{thread}/"}
    return None


_LEAST_ANSWERS = 2
_TARGETS = (r"#[^\d#]*(\d+)$", r"#([^#\n]+)$")


def parent_field(found: Sequence[PostRows], ids: dict[str, Any]) -> dict[str, Any] | None:
    """Return the field of the post that a post answers: a link outside the text to the element of an earlier post, which is not
    always the one before. `ids`: the field of the posts' ids.
    """
    pairs: list[tuple[Any, Any]] = []
    answers: list[tuple[Any, str]] = []
    far = 0
    for one in found:
        anchors = {name: n for n, row in reversed(list(enumerate(one.rows))) for name in _anchors(row)}
        for n, (row, number) in enumerate(zip(one.rows, one.numbers, strict=True)):
            body = one.fields.bodies[number].root
            text = set(one.page.tree.elements[body].iter()) if body is not None else set()
            links = ((a, anchors.get(_on_page(a, one.page), n)) for a in row.iter("a") if a not in text)
            link, place = next(((a, place) for a, place in links if place < n), (None, n))
            pairs.append((row, link))
            if link is not None:
                answers.append((one.rows[place], link.get("href")))
                far += place < n - 1
    if not far or len(answers) < _LEAST_ANSWERS:
        return None
    for regex in _TARGETS:
        ids_of = [_match(row, ids["select"], re.compile(ids["regex"])) for row, _ in answers]
        targets = [re.search(regex, href) for _, href in answers]
        if all(to and own and to[1] == own[1] for to, own in zip(targets, ids_of, strict=True)):
            select = as_value([attribute_of(one, "href") for one in field_selectors(pairs, 1)])
            return {"select": select, "regex": regex} | ({"prefix": ids["prefix"]} if "prefix" in ids else {}) if select else None
    return None


def _anchors(row: Any) -> Iterator[str]:
    """Yield the names of a row's elements that links may lead to."""
    return (name for element in row.iter() for name in (element.get("id"), element.get("name")) if name)


def _on_page(link: Any, page: OpenedPage) -> str:
    """Return the name of the element of the same page to which a link leads; empty for any other link."""
    before, _, name = (link.get("href") or "").partition("#")
    return name if not before or urljoin(page.base, before) == page.url else ""


def _match(row: Any, select: str, pattern: re.Pattern[str]) -> re.Match[str] | None:
    """Return the match in the first value of an attribute that a selector finds in a row."""
    values = compiled("html", select)(row)
    return pattern.search(str(values[0]).strip()[-_LONGEST_ADDRESS:]) if values else None


def _values(found: Sequence[PostRows], select: str, pattern: re.Pattern[str]) -> tuple[list[str | None], list[str | None]]:
    """Return the values of the opening posts that are rows, and of all other rows."""
    opening: list[str | None] = []
    others: list[str | None] = []
    is_first = all(one.lead is None for one in found)
    for one in found:
        for number, row in zip(one.numbers, one.rows, strict=True):
            (opening if is_first and number == 0 else others).append(_value(row, select, pattern))
    return opening, others


def _id_places(found: Sequence[PostRows]) -> list[tuple[str, str]]:
    """Return places of ids: attributes of a row, and of the elements in it."""
    rows, longest = found[0].rows, max((one.rows for one in found), key=len)
    places: dict[tuple[str, str], None] = {}
    for name in {**rows[0].attrib, **longest[-1].attrib}:
        is_data = name.startswith("data-") and name not in DATE_DATA and not suggests_date(name)
        if is_data or name in _ID_NAMES or name.endswith("id"):
            places.setdefault((".", name))
    inner: dict[tuple[str, str], list[tuple[Any, Any]]] = {}
    for row in (rows[0], longest[-1]):
        for element in list(row.iterdescendants())[:200]:
            if isinstance(element.tag, str):
                for name, value in element.attrib.items():
                    if (name in _ID_NAMES or name.endswith("id")) and len(value) < 300 and _ID.search(value):
                        inner.setdefault((element.tag, name), []).append((row, element))
    for (_, name), pairs in inner.items():
        for selector in {one for pair in pairs[:12] for one in field_selectors([pair], 1)}:
            places.setdefault((selector, name))
    return list(places)[:120]


def _value(row: Any, select: str, pattern: re.Pattern[str]) -> str | None:
    match = _match(row, select, pattern)
    if match is None or (pattern is _NUMBER_AT_END and is_code(match.string)):
        return None
    return match[1] if len(match[1]) <= _LONGEST_ID else None


def _id_score(selector: str, name: str, values: list[str], found: Sequence[PostRows]) -> float:
    score = 2.0 * (selector == "." and name == "id") + 1.0 * (name != "href") + 0.5 * (name.startswith("data-"))
    text = f"{selector} {name}".lower()
    score -= 2.0 * bool(re.search(r"user|author|avatar|member|profile|sig|quote|like|vote", text))
    seen = {post.id for one in found for post in one.page.posts if post.id}
    score += 1.5 * (len(seen & set(values)) >= 0.8 * len(values))
    numbers = [int(value) for value in values if value.isdigit()]
    if (
        len(numbers) == len(values)
        and sorted(numbers) == list(range(min(numbers), min(numbers) + len(numbers)))
        and min(numbers) < 3
    ):
        score -= 3.0  # places in a thread: another thread has them, too
    return score


_TITLE = "substring(normalize-space(//title), 1, 80)"


def made_id(pages: Sequence[tuple[OpenedPage, Sequence[Any]]], authors: list[str], date: Any, body: Any) -> str | None:
    """Return an XPath of title, author and date of a post, as precise as needed to distinguish posts; the first words in place
    of a relative date. None where the first row has no author or date.
    """
    (page, rows), dates = pages[0], first_selector(date)
    if not authors or dates is None:
        return None
    author = _as_xpath(authors[0], rows[0])
    last = _as_xpath(dates, rows[0])
    if author is None or last is None:
        return None
    words = _as_xpath(first_selector(body) or "", rows[0])
    beginning = f"substring(normalize-space({words}), 1, 80)" if words else None
    ends = [one for one in (last, f"{last}/@datetime") if compiled("html", one)(rows[0]) and not moves(one, rows[:10], page)]
    if beginning:
        ends += [beginning, *(f"concat({one}, '/', {beginning})" for one in ends)]
    ids = [f"(concat({_TITLE}, '/', normalize-space({author}), '/', normalize-space({one})))" for one in ends or [last]]
    return max(ids, key=lambda one: _different_ids(one, pages))


def _different_ids(select: str, pages: Sequence[tuple[OpenedPage, Sequence[Any]]]) -> int:
    """Count the different ids that an XPath finds."""
    return sum(len({compiled("html", select)(row)[0] for row in rows}) for _, rows in pages)


def first_selector(field: Any) -> str | None:
    """Return the first selector of a field of a site file."""
    select = field.get("select") if isinstance(field, dict) else field
    return select if select is None or isinstance(select, str) else select[0]


def _as_xpath(selector: str, row: Any) -> str | None:
    """Return an XPath for a selector's first match in the row; None where it finds nothing."""
    if not selector or not compiled("html", selector)(row):
        return None
    return selector if is_xpath(selector) else f"(./{xpath_of(selector, 'descendant::')})[1]"


_ATTRIBUTES = ("title", *DATE_DATA, "content", "aria-label")  # visible text comes first, unlike in `fields/post_marks.py`
_EXACT = 1e-4

Wanted = Sequence[tuple[OpenedPage, Sequence[tuple[Any, datetime | None]]]]
"""Pages, with their rows and the date of each."""


def date_field(selectors: list[str], wanted: Wanted) -> Any:
    """Return the field's value in a site file: the text, an attribute, or the element's own text (`<div>3 days ago <a>ida</a>`)
    by which most dates are right.
    """
    attributes = [[attribute_of(one, name) for one in selectors] for name in _ATTRIBUTES]
    ways: list[list[str]] = [selectors, *attributes, [own_text_of(one) for one in selectors]]
    best = max(ways, key=lambda way: _right(way[0], wanted))
    return as_value(best)


def moves(field: Any, rows: Sequence[Any], page: OpenedPage) -> bool:
    """Return True if some dates are relative ("3 days ago"), so that a later reading gives another time."""
    selector, reader = first_selector(field) or "", _reader(page)
    read = [reader.read(text) for row in rows if (text := _text(selector, row))]
    return any(moment is not None and not fixed for moment, fixed in read)


def _reader(page: OpenedPage) -> DateReader:
    return DateReader(read_at(page.response), language=page.language, time_zone="UTC")


def _text(selector: str, row: Any) -> str | None:
    """Return the text that is read as a date: an element's `datetime` before its text."""
    found = compiled("html", selector)(row)
    return (
        (found[0] if isinstance(found[0], str) else found[0].get("datetime") or "".join(found[0].itertext())) if found else None
    )


def _right(selector: str, wanted: Wanted) -> float:
    """Count the rows whose date is right to the day, plus a little for each that is right to the minute, unlike "2 days ago"."""
    right = 0.0
    for page, rows in wanted:
        reader = _reader(page)
        for row, moment in rows:
            text = _text(selector, row) if moment is not None else None
            read, _ = reader.read(text)
            if read is not None and moment is not None and (off := abs((read - moment).total_seconds())) < 43_200:
                right += 1 + _EXACT * (off < 60)
    return right
