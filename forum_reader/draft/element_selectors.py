"""Selectors for elements that are known already: rows in a page, and fields within a row.

Candidates are made of tags, classes, ids and attributes, and of positions in the markup where these are not enough; each is
tried on all the pages, and the shortest that finds just these elements is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from forum_reader.definition.selectors import compiled, is_xpath
from forum_reader.fields import post_marks

NAME = re.compile(r"-?[A-Za-z_][\w-]*$")
"""A class, an id or an attribute that can stand in a selector unquoted."""
_NUMBERED = re.compile(r"\d{3,}|[0-9a-f]{8,}")
_STATE = re.compile(
    r"^(?:odd|even|first|last|alt\d*|row\d+|bg\d+|unread|read|online|offline|selected|active|current|\S+[-_](?:odd|even))$",
    re.IGNORECASE,
)
_ID_PREFIX = re.compile(r"[A-Za-z][A-Za-z_-]*")
_NUMBERED_ID = re.compile(r"([A-Za-z][A-Za-z_-]{3,})\d+")
_ROLES = ("itemprop", "rel", "role")
_PROFILES = re.compile(r"/(?:users?|u|members?|profiles?|people|author|user-profile)/|(?:mode=viewprofile|action=profile|/~|/@)")
_ENOUGH = 0.85  # of the rows
_DEEPEST = 12  # levels between a row and a field
_ABOVE = 6  # levels above rows that are tried
_AFTER = 6  # siblings behind a row that may belong to it


def rows_selector(pages: Sequence[tuple[Any, Sequence[Any]]]) -> str | None:
    """Return a selector of these rows; each page is its root and its rows. None where none fits."""
    best, best_score = None, 0.0
    first = max(pages, key=lambda page: len(page[1]))
    for candidate in _row_candidates(first[1]):
        score = min((_fit(candidate, root, rows) for root, rows in pages if rows), default=0.0)
        if score > best_score + 0.001:
            best, best_score = candidate, score
        if best_score >= 1.0:
            break
    return best if best_score >= _ENOUGH else None


def field_selectors(pairs: Sequence[tuple[Any, Any]], most: int = 2) -> list[str]:
    """Return selectors whose first match in each row is its field: `pairs` are rows and their fields (None where a row has
    none). The second selector is for the rows in which the first finds nothing. Empty where none finds the field in most of its
    rows.
    """
    found: list[str] = []
    left = [pair for pair in pairs if pair[1] is not None]
    without = [row for row, field in pairs if field is None]
    total = len(left)
    while left and len(found) < most:
        best, best_score = None, 0.0
        for candidate in _field_candidates(left):
            hits = [_first(candidate, row) for row, _ in left]
            right = sum(hit is field for hit, (_, field) in zip(hits, left, strict=True))
            wrong = sum(hit is not None and hit is not field for hit, (_, field) in zip(hits, left, strict=True))
            wrong += sum(_first(candidate, row) is not None for row in without[:10])
            score = (right - 2 * wrong) / len(left)
            if score > best_score + 0.001:
                best, best_score = candidate, score
            if best_score >= 1.0:
                break
        if best is None or (not found and best_score < 0.5):
            break
        found.append(best)
        left = [(row, field) for row, field in left if _first(best, row) is None]
        if len(left) < 0.05 * total:
            break
    return found


def class_selector(element: Any) -> str | None:
    """Return a selector by the element's first usable class; None where it has none."""
    return next(iter(class_selectors(element)), None)


def id_selector(element: Any) -> str | None:
    """Return a selector by the beginning of the element's id, which ends with a number: `div[id^="quote-"]`; else None."""
    match = _NUMBERED_ID.fullmatch(element.get("id") or "")
    return f'{element.tag}[id^="{match[1]}"]' if match else None


def class_selectors(element: Any) -> list[str]:
    """Return selectors by each usable class of the element."""
    return [f"{element.tag}.{name}" for name in _classes(element)]


def _fit(selector: str, root: Any, rows: Sequence[Any]) -> float:
    """Return 1 where the selector finds just these rows; else the share of matches and rows that are both."""
    try:
        found = compiled("html", selector)(root)
    except ValueError:
        return 0.0
    wanted, got = set(rows), {one for one in found if not isinstance(one, str)}
    return len(wanted & got) / max(1, len(wanted | got))


def _first(selector: str, row: Any) -> Any:
    found = compiled("html", selector)(row)
    return found[0] if found and not isinstance(found[0], str) else None


def _classes(element: Any) -> list[str]:
    names = (element.get("class") or "").split()
    return [name for name in names if NAME.match(name) and not _STATE.match(name) and not _NUMBERED.search(name)]


def _own(elements: Sequence[Any]) -> Iterator[str]:
    """Yield simple selectors that match all of these elements: by classes, the beginning of their ids, attributes."""
    tags = {element.tag for element in elements}
    tag = tags.pop() if len(tags) == 1 else ""
    shared = [name for name in _classes(elements[0]) if all(name in (one.get("class") or "").split() for one in elements)]
    yield from (f"{tag}.{name}" for name in shared)
    if len(shared) > 1:
        yield tag + "".join(f".{name}" for name in shared)
    ids = [element.get("id") or "" for element in elements]
    prefix = _ID_PREFIX.match(ids[0])
    if prefix and len(elements) > 1 and all(one.startswith(prefix[0]) and one != prefix[0] for one in ids):
        yield f'{tag}[id^="{prefix[0]}"]'
    for name in elements[0].attrib:
        if name not in ("class", "id", "style", "href") and NAME.match(name) and all(name in one.attrib for one in elements):
            values = {one.get(name) for one in elements}
            value = values.pop() if len(values) == 1 else None
            yield f'{tag}[{name}="{value}"]' if value and len(value) < 40 and '"' not in value else f"{tag}[{name}]"
    if tag:
        yield tag


def _row_candidates(rows: Sequence[Any]) -> Iterator[str]:
    own = list(dict.fromkeys(_own(rows)))
    yield from own[:-1] if own and own[-1] == rows[0].tag else own
    inner = [f":has({one})" for one in _inside(rows)]
    between = ""
    level: list[Any] = list(rows)
    for _ in range(_ABOVE):
        level = list(dict.fromkeys(parent for one in level if (parent := one.getparent()) is not None))
        if not level:
            break
        above = list(dict.fromkeys(_anchor(level)))
        for up in above:
            for one in own:
                yield f"{up} > {between}{one}"
                yield from (f"{up} > {between}{one}{has}" for has in inner[:6])
        between = f"{level[0].tag} > {between}"
    for one in own:
        yield from (f"{one}{has}" for has in inner)


def _anchor(level: Sequence[Any]) -> Iterator[str]:
    """Yield selectors of elements around rows: by the whole id of a single element, else by their common properties."""
    if len(level) == 1:
        name = level[0].get("id") or ""
        if NAME.match(name) and not _NUMBERED.search(name):
            yield f"#{name}"
    yield from _own(level)


def _inside(rows: Sequence[Any]) -> list[str]:
    """Return selectors that match something in each of the rows, to distinguish them from other elements of the same tag."""
    found: dict[str, None] = {}
    for element in list(rows[0].iterdescendants())[:60]:
        if isinstance(element.tag, str):
            for name in _classes(element):
                found.setdefault(f"{element.tag}.{name}")
            found.setdefault(element.tag)
            if (up := element.getparent()) is rows[0]:
                found.setdefault(f"> {element.tag}")
            elif up.getparent() is rows[0]:
                found.setdefault(f"> {up.tag} > {element.tag}")
    return [one for one in found if one[0] == ">" or all(compiled("html", one)(row) for row in rows[:30])][:20]


def _field_candidates(pairs: Sequence[tuple[Any, Any]]) -> list[str]:
    """Return candidates for the fields of some rows, the likeliest first."""
    found: dict[str, None] = {}
    for row, field in [*pairs[:3], pairs[len(pairs) // 2], pairs[-1]]:
        if field is row:
            found.setdefault(".")
            continue
        found |= dict.fromkeys(_of_field(row, field))
    return list(found)


def _of_field(row: Any, field: Any) -> Iterator[str]:
    way = _way(row, field)
    if way is None:
        yield from _behind(row, field)
        return
    yield from (f"{field.tag}.{name}" for name in _classes(field))
    for name in _ROLES:
        value = field.get(name)
        if value and NAME.match(value):
            yield f'{field.tag}[{name}~="{value}"]'
    if (
        field.tag == "a"
        and (match := _PROFILES.search(field.get("href") or ""))
        and post_marks.is_profile_link(field.get("href"))
    ):
        yield f'a[href*="{match[0]}"]'
    if field.tag in ("time", "blockquote", "pre", "article"):
        yield field.tag
    for up in reversed(way[1:-1]):
        below = " > ".join(one.tag for one in way[way.index(up) + 1 :])
        for name in _classes(up):
            yield f"{up.tag}.{name} > {below}"
            yield f"{up.tag}.{name} {field.tag}"
    yield "./" + "/".join(f"{one.tag}[{_nth(one)}]" for one in way[1:])
    yield "./" + "/".join(one.tag for one in way[1:])
    yield f"./{'/'.join(one.tag for one in way[1:-1])}/{field.tag}[last()]".replace("//", "/")


def _behind(row: Any, field: Any) -> Iterator[str]:
    """Yield selectors of a field in a sibling behind the row: a row of a table below its heading, `dd` behind `dt`."""
    sibling, steps = row.getnext(), 1
    while sibling is not None and steps <= _AFTER:
        way = _way(sibling, field)
        if way is not None:
            step = f"./following-sibling::*[{steps}]/self::{sibling.tag}"
            within = "".join(f"/{one.tag}[{_nth(one)}]" for one in way[1:])
            for name in _classes(field):
                yield f"{step}//*[{has_class(name)}]"
            yield step + within
            return
        sibling, steps = sibling.getnext(), steps + (isinstance(sibling.tag, str))


def _way(row: Any, field: Any) -> list[Any] | None:
    way = [field]
    while way[-1] is not row:
        parent = way[-1].getparent()
        if parent is None or len(way) > _DEEPEST + 2:
            return None
        way.append(parent)
    return way[::-1]


def _nth(element: Any) -> int:
    return 1 + sum(1 for _ in element.itersiblings(element.tag, preceding=True))


def has_class(name: str) -> str:
    """Return the condition of an XPath for elements of a class."""
    return f"contains(concat(' ', normalize-space(@class), ' '), ' {name} ')"


def words_of(element: Any) -> str:
    """Return the text of an element on one line; empty for None."""
    return "" if element is None else " ".join("".join(map(str, element.itertext())).split())


def attribute_of(selector: str, name: str) -> str:
    """Return a selector of an attribute of the elements that `selector` finds."""
    return f"{selector}/@{name}" if is_xpath(selector) else f"./@{name}" if selector == "." else f"{selector}::attr({name})"


def own_text_of(selector: str) -> str:
    """Return a selector of the text nodes that are children of the elements that `selector` finds."""
    return f"{selector}/text()" if is_xpath(selector) else "./text()" if selector == "." else f"{selector}::text"


def as_value(selectors: Iterable[str]) -> str | list[str]:
    """Return selectors as a value in a site file."""
    found = list(selectors)
    return found[0] if len(found) == 1 else found


_ATTRIBUTE = re.compile(r"(.+)::attr\(([\w-]+)\)$", re.DOTALL)


def xpath_of(selector: str, prefix: str) -> str:
    """Return the selector as XPath; CSS gets `prefix` (`//`, `descendant::`) before it."""
    attribute = _ATTRIBUTE.match(selector)
    path, end = (attribute[1], f"/@{attribute[2]}") if attribute else (selector, "")
    if is_xpath(path):
        return path + end
    from cssselect import HTMLTranslator

    return HTMLTranslator().css_to_xpath(path, prefix=prefix) + end
