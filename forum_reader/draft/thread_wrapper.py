"""Tables of threads for a site file, learned from pages of several threads: rows, fields, and the link to the next page.

The readers of `forum_reader/readers/` find the posts; selectors are made for their elements.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from forum_reader.definition.selectors import compiled
from forum_reader.fields.author_field import name_of

from .element_selectors import (
    as_value,
    class_selector,
    field_selectors,
    id_selector,
    own_text_of,
    rows_selector,
    words_of,
    xpath_of,
)
from .page_sample import OpenedPage
from .paging_links import next_selector, numbered_selector
from .row_fields import date_field, first_selector, id_field, id_in_thread, made_id, parent_field
from .thread_rows import (
    PostRows,
    article_field,
    badge_selectors,
    begin_before,
    begins_each_page,
    of_name_alone,
    order_of,
    post_rows,
    title_selector,
)

_LEAST_SEVERAL = 2  # threads with several posts on a page: a text with few answers looks like the only message
_MOST_SHARED = 0.5  # of the posts of a page
_MOST_KINDS = 4  # of rows
_NAMED = re.compile(r"[.#]")
_NEAR = 4  # siblings of a row in which its text may be


def learn_comments(
    pages: Sequence[OpenedPage], second: Mapping[str, OpenedPage] | None = None, listed: Mapping[str, datetime] | None = None
) -> dict[str, Any] | None:
    """Return the table `[pages.comments]` without its address; None where no selector finds the posts. `second`: the pages that
    follow some of these, by the address of the first one; `listed`: the newest date that the list has for a page.
    """
    shapes = Counter(page.shape for page in pages)
    shape = shapes.most_common(1)[0][0]
    threads = sum(page.shape is None and len(page.posts) > 1 for page in pages)
    if shape is not None and (shape != "message" or threads < max(_LEAST_SEVERAL, shapes[shape] / 2)):
        return _shaped(shape, pages)
    found = _of_threads([rows for page in pages if (rows := post_rows(page)) is not None])
    if not found:
        return None
    selector = rows_selector([(rows.page.root, rows.rows) for rows in found])
    if (selector is None or not _NAMED.search(selector)) and (several := _of_kinds(found)) is not None:
        selector, found = several
    if selector is None:  # pages were split in different ways: take the one with most posts
        best = max(found, key=lambda one: (one.are_alike, len(one.rows)))
        selector = rows_selector([(best.page.root, best.rows)])
        found = [best, *(same for one in found if one is not best and selector and (same := _with_rows(one, selector)))]
    if selector is None or (fields := _fields(found)) is None:
        return None
    table: dict[str, Any] = {"rows": selector}
    order = order_of(found, second or {})
    following = [one for page in pages if (one := next_selector(page.root, page.url, page.next))]
    if not following and order != "oldest":  # its first page has the highest number
        following = [one for page in pages if (one := numbered_selector(page.root, page.url, -1))]
    if following:
        table["next"] = Counter(following).most_common(1)[0][0]
    table["first_is_post"] = all(one.lead is None for one in found)
    if order != "oldest":
        table["order"] = order
    if any(block.around is not None for one in found for block in one.fields.paths.blocks):
        table["nested"] = True
    table["post"] = _opening(found, is_row=table["first_is_post"])
    if "title" not in table["post"]:  # all pages have the board's: a thread has the title of its first words
        text = first_selector(table["post"].get("body") or fields["body"]) or "."
        table["post"]["title"] = "title" if text == "." else _only(text, found[0].page.root)
    table["fields"] = fields
    if table["first_is_post"] and begin_before(found, listed or {}) and (article := article_field(found)) is not None:
        table |= {"first_is_post": False, "post": table["post"] | {"body": article}}
    if table["first_is_post"] and begins_each_page(found, second or {}, selector):
        table["repeats_post"] = True
    return table


def _shaped(shape: str, pages: Sequence[OpenedPage]) -> dict[str, Any]:
    """Return the table of pages whose posts are put into elements."""
    own = shape == "message" and all(post.section for page in pages for post in page.shaped)
    return {
        "shape": shape,
        "rows": "article.trawl-post",
        "first_is_post": True,
        "post": {"title": ".trawl-section" if own else title_selector([page.root for page in pages])},
        "fields": {
            "id": {"select": "./@data-id", "prefix": "{thread}/"},
            "body": [".trawl-text"],
            "author": ".trawl-author",
            "created_at": "time",
        }
        | ({"parent_id": {"select": "./@data-parent", "prefix": "{thread}/"}} if shape == "signed" else {}),
    }


def _of_threads(found: list[PostRows]) -> list[PostRows]:
    """Leave out pages most of whose posts are also on another page: a box next to the threads."""
    texts = [{post.text for post in one.page.posts} for one in found]
    others = [set().union(*texts[:n], *texts[n + 1 :]) for n in range(len(texts))]
    kept = [one for one, own, other in zip(found, texts, others, strict=True) if len(own & other) <= _MOST_SHARED * len(own)]
    return kept or found


def _of_kinds(found: Sequence[PostRows]) -> tuple[str, list[PostRows]] | None:
    """Return one selector for rows of several kinds, as a question, its answers, and comments; and the pages that it fits."""
    of_pages = [{_kind(row) for row in one.rows} for one in found]
    kinds = set().union(*of_pages)
    if not 1 < len(kinds) <= _MOST_KINDS or any(not any(kind in one and len(one) > 1 for one in of_pages) for kind in kinds):
        return None
    selectors = []
    for kind in sorted(kinds):
        rows = [(one.page.root, [row for row in one.rows if _kind(row) == kind]) for one in found]
        if (selector := rows_selector(rows)) is None:
            return None
        selectors.append(selector)
    whole = ", ".join(selectors)
    fitting = [one for one in found if _with_rows(one, whole) is one]
    fit = 2 * len(fitting) > len(found) and {_kind(row) for one in fitting for row in one.rows} == kinds
    return (whole, fitting) if fit else None


def _kind(row: Any) -> str:
    return class_selector(row) or str(row.tag)


def _with_rows(one: PostRows, selector: str) -> PostRows | None:
    """Return the page if a selector finds just its rows, or all but the first, which then is an opening post outside of the
    rows.
    """
    rows = set(compiled("html", selector)(one.page.root))
    if rows == set(one.rows):
        return one
    if one.lead is None and rows == set(one.rows[1:]):
        return PostRows(one.page, one.fields, one.rows[1:], one.numbers[1:], one.numbers[0])
    return None


def _pairs(found: Sequence[PostRows], places: str) -> list[tuple[Any, Any]]:
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


def _selectors(found: Sequence[PostRows], places: str) -> list[str]:
    """Return field selectors for all pages, or, where these were split in different ways, for the one with most posts."""
    return field_selectors(_pairs(found, places)) or field_selectors(_pairs([max(found, key=lambda one: len(one.rows))], places))


def _fields(found: Sequence[PostRows]) -> dict[str, Any] | None:
    fields: dict[str, Any] = {}
    ids = id_field(found)
    body = _body(found)
    if body is None:
        return None
    authors, dates = _selectors(found, "authors"), _selectors(found, "dates")
    date = _date(dates, found) if dates else None
    fields["id"] = ids or id_in_thread(found) or made_id([(one.page, one.rows) for one in found], authors, date, body)
    if fields["id"] is None:
        return None
    fields["body"] = body
    if authors:
        fields["author"] = _with_regex(authors, [(one, *row) for one in found for row in zip(one.rows, one.numbers, strict=True)])
    if date is not None:
        fields["created_at"] = date
    if isinstance(ids, dict) and (parent := parent_field(found, ids)) is not None:
        fields["parent_id"] = parent
    return fields


def _only(selector: str, root: Any) -> str:
    """Return a selector of only the first match, the opening post's, where the page has more."""
    if selector.startswith((".", "/", "(")) or len(compiled("html", selector)(root)) < 2:
        return selector
    return f"({xpath_of(selector, '//')})[1]"


# -- author, date, text


def _with_regex(selectors: list[str], blocks: list[tuple[PostRows, Any, int]]) -> Any:
    """Return the field with an expression that cuts off the text around the name in its element: `by ida`, `ida · 3 March`."""
    heads: Counter[str] = Counter()
    tails: list[str] = []
    blocks = [(one, row, number) for one, row, number in blocks if _is_found(selectors, one, row, number)]
    if badges := badge_selectors([(one.fields.paths, one.fields.authors[number]) for one, _, number in blocks]):
        return {"select": as_value(selectors), "remove": as_value(badges)}
    for one, _, number in blocks:
        place = one.fields.authors[number]
        whole, name = one.fields.paths.string(place), name_of(one.fields.paths, place)
        at = whole.find(name)
        if at < 0:
            return as_value(selectors)
        heads[whole[:at]] += 1
        tails.append(whole[at + len(name) :])
    if not tails or (set(heads) == {""} and not any(tails)):
        return as_value(selectors)
    if all(_is_own_text(one, number) for one, _, number in blocks):  # `<div>ida <i>3 days ago</i></div>`
        return as_value([own_text_of(selector) for selector in selectors])
    head = heads.most_common(1)[0][0]
    tail = re.match(r"[^\w]*", _common(tails))
    after = re.escape(tail[0].strip()) if tail and tail[0].strip() else ""
    regex = f"^(?:{re.escape(head.strip())}\\s*)?(.+?)\\s*{after or '$'}" if head.strip() else f"^(.+?)\\s*{after or '$'}"
    return {"select": as_value(selectors), "regex": regex}


def _is_found(selectors: list[str], one: PostRows, row: Any, number: int) -> bool:
    """Return True if the selectors find the author's element of the reader in a row."""
    place = one.fields.authors.get(number)
    found = next((found for one_of in selectors if (found := compiled("html", one_of)(row))), None)
    return place is not None and found is not None and found[0] is one.page.tree.elements[place]


def _is_own_text(one: PostRows, number: int) -> bool:
    """Return True if an author's element begins with the name, directly in its own text, followed by an element."""
    place = one.fields.authors[number]
    element = one.page.tree.elements[place]
    own = (element.text, *(child.tail for child in element))
    first = next((text for text in own if text and text.strip()), "")
    return len(element) > 0 and " ".join(first.split()) == name_of(one.fields.paths, place)


def _common(texts: list[str]) -> str:
    first, last = min(texts), max(texts)
    return next((first[:n] for n, char in enumerate(first) if n >= len(last) or last[n] != char), first)


def _date(selectors: list[str], found: Sequence[PostRows]) -> Any:
    wanted = [
        (one.page, [(row, one.fields.dates.published[n]) for row, n in zip(one.rows, one.numbers, strict=True)]) for one in found
    ]
    return date_field(selectors, wanted)


def _body(found: Sequence[PostRows]) -> Any:
    pairs = []
    for one in found:
        pairs += [(row, _body_of(one, row, n)) for row, n in zip(one.rows, one.numbers, strict=True)]
    selectors = field_selectors(pairs)
    without = _cut(found)
    if selectors and selectors[0] != ".":
        without += [one for places in ("authors", "dates") for one in _in_bodies(found, places) if one not in without]
    if not selectors or selectors[0] == ".":
        marks = [*_selectors(found, "authors")[:1], *_selectors(found, "dates")[:1]]
        return {"select": ".", "remove": [*without, *(one for one in marks if one != ".")]}
    return {"select": as_value(selectors), "remove": without} if without else as_value(selectors)


def _body_of(one: PostRows, row: Any, number: int) -> Any:
    """Return the element of a post's text; where the reader took all of the row, the element in it that has just this text."""
    root = one.fields.bodies[number].root
    element = one.page.tree.elements[root] if root is not None else None
    if element is not None and element is not row:
        return element
    words = "".join(one.page.posts[number].text.split())
    around = [row, *row.itersiblings()][: 1 if element is row else _NEAR]
    inner = (one for near in around for one in near.iterdescendants() if isinstance(one.tag, str))
    return next((one for one in inner if words and "".join("".join(one.itertext()).split()) == words), element)


def _cut(found: Sequence[PostRows]) -> list[str]:
    """Return selectors of parts of bodies outside of the posts' text: signatures, notes of edits; none that also finds posts."""
    seen: Counter[str] = Counter()
    kept: set[str] = set()
    for one in found:
        tree, paths = one.page.tree, one.fields.paths
        for number in one.numbers:
            body = one.fields.bodies[number]
            cut: set[str] = set()
            for i in paths.own[number]:
                if (body.root is not None and not body.root < i < tree.end[body.root]) or not tree.size(i):
                    continue
                if (selector := class_selector(tree.elements[i]) or id_selector(tree.elements[i])) is None:
                    continue
                first, last = tree.first_text[i], tree.last_text[i]
                if (first, last) in body.without:
                    cut.add(selector)
                elif not any(start <= first and last <= end for start, end in body.without):
                    kept.add(selector)
            seen.update(cut)
    return [selector for selector, _ in seen.most_common() if selector not in kept][:4]


def _in_bodies(found: Sequence[PostRows], places: str) -> list[str]:
    """Return a selector, within bodies, of authors or dates in them that are not part of their texts; only those without a
    class, as `_cut` finds the others.
    """
    pairs: list[tuple[Any, Any]] = []
    for one in found:
        tree, elements = one.page.tree, one.fields.authors if places == "authors" else one.fields.dates.elements
        for row, number in zip(one.rows, one.numbers, strict=True):
            body, i = one.fields.bodies[number], elements.get(number)
            if i is None or body.root is None or not body.root < i < tree.end[body.root] or not tree.size(i):
                pairs.append((row, None))
                continue
            first, last = tree.first_text[i], tree.last_text[i]
            is_cut = any(start <= first and last <= end for start, end in body.without)
            pairs.append((tree.elements[body.root], tree.elements[i] if is_cut else None))
    if 2 * sum(element is not None and class_selector(element) is None for _, element in pairs) <= len(pairs):
        return []
    return field_selectors([pair for pair in pairs if pair[1] is not None], 1)


def _author_of_lead(one: PostRows) -> int | None:
    """Return the element of an opening post's author: the reader's, else the first that is the name alone."""
    tree, block, name = one.page.tree, one.fields.paths.blocks[0], one.fields.author(0)
    named = (i for i in range(block.start, block.end) if name and tree.string(i) == name)
    return one.fields.authors[0] if 0 in one.fields.authors else next(named, None)


def _opening(found: Sequence[PostRows], *, is_row: bool) -> dict[str, Any]:
    """Return the fields of the opening post: the thread's title and, where it is outside the rows, the others."""
    roots = [one.page.root for one in found]
    title = title_selector(roots)
    names = {words_of(next(iter(compiled("html", title)(root)), None)) for root in roots}
    table: dict[str, Any] = {} if len(names) == 1 < len(roots) else {"title": title}
    leads = [one for one in found if one.lead is not None]
    if not leads or is_row:
        return table
    authors = [(one.fields.paths, one.fields.authors[0]) for one in leads if 0 in one.fields.authors]
    for name, places in (
        ("body", [one.fields.bodies[0].root for one in leads]),
        ("author", [_author_of_lead(one) for one in leads]),
        ("created_at", [one.fields.dates.elements.get(0) for one in leads]),
    ):
        pairs = [
            (one.page.root, one.page.tree.elements[i] if i is not None else None) for one, i in zip(leads, places, strict=True)
        ]
        if selectors := field_selectors(pairs, 1):
            found_first = _only(selectors[0], leads[0].page.root)
            published = [(one.page, [(one.page.root, one.fields.dates.published[0])]) for one in leads]
            table[name] = date_field([found_first], published) if name == "created_at" else found_first
            if name == "author" and (badges := badge_selectors(authors)):
                table[name] = {"select": found_first, "remove": as_value(badges)}
        elif name == "body" and (article := article_field(leads)) is not None:
            table[name] = article
    return table
