"""What a site file says of threads, learned from pages of several threads: rows, fields, and the link to the next page.

The readers of `forums/sites/any_page/` find the posts; selectors are made for the elements that they took.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from forums.sites.any_page.author_field import name_of
from forums.sites.any_page.block_fields import Fields
from forums.sites.any_page.post_marks import DATE_DATA, says_date
from forums.sites.definition.selectors import compiled

from .author_element import of_name_alone
from .date_fields import date_field
from .element_selectors import as_value, attribute_of, class_selector, field_selectors, own_text_of, rows_selector
from .made_id import made_id
from .opened_page import OpenedPage
from .paging_links import next_selector
from .thread_title import title_selector

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
_ID = re.compile(r"([0-9A-Za-z][0-9A-Za-z_~.@=-]*)/?$")
_NUMBER_AT_END = re.compile(r"(\d+)/?$")
_LONGEST_ID = 200
_LEAST_SAME = 3  # threads
_NEAR = 4  # siblings of a row in which its text may be


@dataclass(slots=True)
class _Rows:
    """The rows of a page and the blocks that they stand for, by number; `lead`: that of an opening post outside the rows."""

    page: OpenedPage
    fields: Fields
    rows: list[Any]
    numbers: list[int]
    lead: int | None


def learn_comments(pages: Sequence[OpenedPage]) -> dict[str, Any] | None:
    """The table `[pages.comments]` but for its address; None where no selector finds the posts."""
    found = [rows for page in pages if (rows := _rows(page)) is not None]
    if not found:
        return None
    selector = rows_selector([(rows.page.root, rows.rows) for rows in found])
    if selector is None:  # pages that were taken apart in different ways: the one with most posts counts
        found = [max(found, key=lambda one: len(one.rows))]
        selector = rows_selector([(found[0].page.root, found[0].rows)])
    if selector is None:
        return None
    fields = _fields(found)
    if fields is None and (apart := [_led(one) for one in found if len(one.rows) > 1]):  # opening posts have no id
        found, fields = apart, _fields(apart)
        selector = rows_selector([(one.page.root, one.rows) for one in found])
    if fields is None or selector is None:
        return None
    table: dict[str, Any] = {"rows": selector}
    following = [one for page in pages if (one := next_selector(page.root, page.url, page.next))]
    if following:
        table["next"] = Counter(following).most_common(1)[0][0]
    table["first_is_post"] = all(one.lead is None for one in found)
    if any(block.around is not None for one in found for block in one.fields.paths.blocks):
        table["nested"] = True
    table["post"] = _opening(found)
    table["fields"] = fields
    return table


def _rows(page: OpenedPage) -> _Rows | None:
    """The elements of the blocks; of a post that is several siblings the one with its date or author."""
    if page.learned is None or not page.posts:
        return None
    fields, tree = page.learned.fields, page.tree
    blocks = fields.found.blocks
    signs = Counter(tree.sign[block.start] for block in blocks)
    is_lead = "lead" in fields.found.how or (len(blocks) > 2 and signs[tree.sign[blocks[0].start]] == 1)
    rows, numbers = [], []
    for number, block in enumerate(blocks):
        if number == 0 and is_lead:
            continue
        place = block.start
        if tree.end[block.start] < block.end:
            mark = fields.dates.elements.get(number, fields.authors.get(number, block.start))
            while tree.parent[mark] != tree.parent[block.start] and tree.parent[mark] > 0:
                mark = tree.parent[mark]
            place = mark
        rows.append(tree.elements[place])
        numbers.append(number)
    return _Rows(page, fields, rows, numbers, 0 if is_lead else None) if rows else None


def _led(one: _Rows) -> _Rows:
    """With the opening post outside the rows."""
    return one if one.lead is not None else _Rows(one.page, one.fields, one.rows[1:], one.numbers[1:], 0)


def _pairs(found: Sequence[_Rows], places: str) -> list[tuple[Any, Any]]:
    pairs = []
    for one in found:
        tree = one.page.tree
        by_number = getattr(one.fields, places) if places == "authors" else one.fields.dates.elements
        pairs += [
            (row, tree.elements[i] if (i := by_number.get(n)) is not None else None)
            for row, n in zip(one.rows, one.numbers, strict=True)
        ]
    if places != "authors":
        return pairs
    return list(zip([row for row, _ in pairs], of_name_alone([element for _, element in pairs]), strict=True))


def _selectors(found: Sequence[_Rows], places: str) -> list[str]:
    """Of all pages, or where these were taken apart in different ways of the one with most posts."""
    return field_selectors(_pairs(found, places)) or field_selectors(_pairs([max(found, key=lambda one: len(one.rows))], places))


def _fields(found: Sequence[_Rows]) -> dict[str, Any] | None:
    fields: dict[str, Any] = {}
    ids = _id(found)
    body = _body(found)
    if body is None:
        return None
    authors, dates = _selectors(found, "authors"), _selectors(found, "dates")
    date = _date(dates, found) if dates else None
    fields["id"] = ids or made_id(found[0].rows, found[0].page, authors, date, body)
    if fields["id"] is None:
        return None
    fields["body"] = body
    if authors:
        fields["author"] = _with_regex(authors, [(one, n) for one in found for n in one.numbers])
    if date is not None:
        fields["created_at"] = date
    return fields


# -- ids


def _id(found: Sequence[_Rows]) -> dict[str, Any] | None:
    """What is in an attribute of each row, and in no two of all pages the same."""
    best: tuple[float, dict[str, Any]] | None = None
    for selector, name in _id_places(found):
        for pattern, bonus in ((_NUMBER_AT_END, 0.5), (_ID, 0.0)):
            values = [_value(row, selector, name, pattern) for one in found for row in one.rows]
            if None in values or len(set(values)) < len(values):
                continue
            score = bonus + _id_score(selector, name, [value for value in values if value], found)
            if best is None or score > best[0]:
                best = (score, {"select": attribute_of(selector, name), "regex": pattern.pattern})
    return best[1] if best else None


def _id_places(found: Sequence[_Rows]) -> list[tuple[str, str]]:
    """Where ids may be: attributes of a row, and of what is in it."""
    rows = [row for one in found for row in one.rows]
    places: dict[tuple[str, str], None] = {}
    for name in rows[0].attrib:
        is_data = name.startswith("data-") and name not in DATE_DATA and not says_date(name)
        if is_data or name in _ID_NAMES or name.endswith("id"):
            places.setdefault((".", name))
    inner: dict[tuple[str, str], list[tuple[Any, Any]]] = {}
    for row in (rows[0], rows[-1]):
        for element in list(row.iterdescendants())[:200]:
            if isinstance(element.tag, str):
                for name, value in element.attrib.items():
                    if (name in _ID_NAMES or name.endswith("id")) and len(value) < 300 and _ID.search(value):
                        inner.setdefault((element.tag, name), []).append((row, element))
    for (_, name), pairs in inner.items():
        for selector in {one for pair in pairs[:12] for one in field_selectors([pair], 1)}:
            places.setdefault((selector, name))
    return list(places)[:120]


def _value(row: Any, selector: str, name: str, pattern: re.Pattern[str]) -> str | None:
    elements = compiled("html", selector)(row)
    value = elements[0].get(name) if elements and not isinstance(elements[0], str) else None
    match = pattern.search(value.strip()) if value else None
    return match[1] if match and len(match[1]) <= _LONGEST_ID else None


def _id_score(selector: str, name: str, values: list[str], found: Sequence[_Rows]) -> float:
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


def _same(bodies: list[Any]) -> list[str]:
    """Selectors of headings that stand in the opening posts of all threads: `Message`, often for screen readers alone."""
    if len(bodies) < _LEAST_SAME:
        return []
    headings = [
        {(one.tag, one.get("id"), one.text) for one in body.iterchildren("h1", "h2", "h3", "h4", "h5")} for body in bodies
    ]
    return [f'{tag}[id="{id_}"]' if id_ and '"' not in id_ else tag for tag, id_, text in set.intersection(*headings) if text]


def _only(selector: str, root: Any) -> str:
    """What a selector finds first: the opening post's, where the page has more of them."""
    if selector.startswith((".", "/", "(")) or len(compiled("html", selector)(root)) < 2:
        return selector
    from cssselect import HTMLTranslator

    return f"({HTMLTranslator().css_to_xpath(selector, prefix='//')})[1]"


# -- author, date, text


def _with_regex(selectors: list[str], blocks: list[tuple[_Rows, int]]) -> Any:
    """With what stands around the name in its element cut off: `by ida`, `ida · 3 March`."""
    heads: Counter[str] = Counter()
    tails: list[str] = []
    for one, number in blocks:
        place = one.fields.authors.get(number)
        if place is None:
            continue
        whole, name = one.fields.paths.string(place), name_of(one.fields.paths, place)
        at = whole.find(name)
        if at < 0:
            return as_value(selectors)
        heads[whole[:at]] += 1
        tails.append(whole[at + len(name) :])
    if not tails or (set(heads) == {""} and not any(tails)):
        return as_value(selectors)
    if all(_is_own_text(one, number) for one, number in blocks):  # `<div>ida <i>3 days ago</i></div>`
        return as_value([own_text_of(selector) for selector in selectors])
    head = heads.most_common(1)[0][0]
    tail = re.match(r"[^\w]*", _common(tails))
    after = re.escape(tail[0].strip()) if tail and tail[0].strip() else ""
    regex = f"^(?:{re.escape(head.strip())}\\s*)?(.+?)\\s*{after or '$'}" if head.strip() else f"^(.+?)\\s*{after or '$'}"
    return {"select": as_value(selectors), "regex": regex}


def _is_own_text(one: _Rows, number: int) -> bool:
    """Whether the first text that is an author's element's own is the name, and an element stands behind it."""
    place = one.fields.authors.get(number)
    if place is None:
        return True
    element = one.page.tree.elements[place]
    own = (element.text, *(child.tail for child in element))
    first = next((text for text in own if text and text.strip()), "")
    return len(element) > 0 and " ".join(first.split()) == name_of(one.fields.paths, place)


def _common(texts: list[str]) -> str:
    first, last = min(texts), max(texts)
    return next((first[:n] for n, char in enumerate(first) if n >= len(last) or last[n] != char), first)


def _date(selectors: list[str], found: Sequence[_Rows]) -> Any:
    wanted = [
        (one.page, [(row, one.fields.dates.published[n]) for row, n in zip(one.rows, one.numbers, strict=True)]) for one in found
    ]
    return date_field(selectors, wanted)


def _body(found: Sequence[_Rows]) -> Any:
    pairs = []
    for one in found:
        pairs += [(row, _body_of(one, row, n)) for row, n in zip(one.rows, one.numbers, strict=True)]
    selectors = field_selectors(pairs)
    without = _cut(found)
    if not selectors or selectors[0] == ".":
        marks = [*_selectors(found, "authors")[:1], *_selectors(found, "dates")[:1]]
        return {"select": ".", "without": [*without, *(one for one in marks if one != ".")]}
    return {"select": as_value(selectors), "without": without} if without else as_value(selectors)


def _body_of(one: _Rows, row: Any, number: int) -> Any:
    """The element of a post's text; where the reader took all of the row, the one in it that has just this text."""
    root = one.fields.bodies[number].root
    element = one.page.tree.elements[root] if root is not None else None
    if element is not None and element is not row:
        return element
    words = "".join(one.page.posts[number].text.split())
    around = [row, *row.itersiblings()][: 1 if element is row else _NEAR]
    inner = (one for near in around for one in near.iterdescendants() if isinstance(one.tag, str))
    return next((one for one in inner if words and "".join("".join(one.itertext()).split()) == words), element)


def _cut(found: Sequence[_Rows]) -> list[str]:
    """Selectors of what stands in bodies and is not the post's: signatures, notes of edits."""
    seen: Counter[str] = Counter()
    for one in found:
        tree, paths = one.page.tree, one.fields.paths
        for number in one.numbers:
            body = one.fields.bodies[number]
            for i in paths.own[number]:
                ranges = (tree.first_text[i], tree.last_text[i])
                if ranges in body.without and (body.root is None or body.root < i < tree.end[body.root]):
                    selector = class_selector(tree.elements[i])
                    if selector:
                        seen[selector] += 1
                        break
    return [selector for selector, _ in seen.most_common(4)]


def _opening(found: Sequence[_Rows]) -> dict[str, Any]:
    """The fields of the opening post: the thread's title and, where it is outside the rows, the others."""
    table: dict[str, Any] = {"title": title_selector([one.page.root for one in found])}
    leads = [one for one in found if one.lead is not None]
    if len(leads) < len(found):
        return table
    for name, places in (
        ("body", [one.fields.bodies[0].root for one in leads]),
        ("author", [one.fields.authors.get(0) for one in leads]),
        ("created_at", [one.fields.dates.elements.get(0) for one in leads]),
    ):
        pairs = [
            (one.page.root, one.page.tree.elements[i] if i is not None else None) for one, i in zip(leads, places, strict=True)
        ]
        if selectors := field_selectors(pairs, 1):
            found_first = _only(selectors[0], leads[0].page.root)
            published = [(one.page, [(one.page.root, one.fields.dates.published[0])]) for one in leads]
            table[name] = date_field([found_first], published) if name == "created_at" else found_first
            if name == "body" and (same := _same([element for _, element in pairs if element is not None])):
                table[name] = {"select": found_first, "without": same}
    return table
