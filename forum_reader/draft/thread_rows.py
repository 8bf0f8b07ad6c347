"""Elements of the posts of a page, which become the rows of a site file, and of an article above its comments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from forum_reader.definition.selectors import compiled
from forum_reader.fields.author_field import badges_of
from forum_reader.page.page_tree import PageTree
from forum_reader.readers.block_paths import BlockPaths
from forum_reader.readers.structure import Fields

from .element_selectors import NAME, class_selector, field_selectors, words_of
from .page_sample import OpenedPage


@dataclass(slots=True)
class PostRows:
    """The rows of a page and the numbers of their blocks; `lead`: the block of an opening post outside the rows."""

    page: OpenedPage
    fields: Fields
    rows: list[Any]
    numbers: list[int]
    lead: int | None

    @property
    def are_alike(self) -> bool:
        """Return True if the rows are all of the same tag and class."""
        blocks, sign = self.fields.found.blocks, self.page.tree.sign
        return len({sign[blocks[number].start] for number in self.numbers}) == 1


def post_rows(page: OpenedPage) -> PostRows | None:
    """Return the elements of the blocks; of a post that is several siblings the one with its date or author."""
    if page.learned is None or not page.posts:
        return None
    fields, tree = page.learned.fields, page.tree
    blocks = fields.found.blocks
    starts = _unwrapped(tree, [block.start for block in blocks])
    signs = Counter(tree.sign[start] for start in starts)
    is_lead = fields.found.has_lead or (len(blocks) > 2 and signs[tree.sign[starts[0]]] == 1)
    rows, numbers = [], []
    for number, (block, place) in enumerate(zip(blocks, starts, strict=True)):
        if number == 0 and is_lead:
            continue
        if tree.end[block.start] < block.end:
            mark = fields.dates.elements.get(number, fields.authors.get(number, block.start))
            while tree.parent[mark] != tree.parent[block.start] and tree.parent[mark] > 0:
                mark = tree.parent[mark]
            place = mark
        rows.append(tree.elements[place])
        numbers.append(number)
    return PostRows(page, fields, rows, numbers, 0 if is_lead else None) if rows else None


def _unwrapped(tree: PageTree, starts: Sequence[int]) -> list[int]:
    """Return the elements of posts; in place of one around a single element with its whole text, that one, where another post has
    its markup: answers of a tree stand in one element more for each level.
    """
    signs, found = {tree.sign[start] for start in starts}, []
    for start in starts:
        inner = start
        while inner + 1 < tree.end[inner] and tree.size(inner + 1) == tree.size(inner):
            inner += 1
            if tree.sign[inner] in signs:
                start = inner
        found.append(start)
    return found


_LEAST = 2  # threads whose order is known, where none was read over two pages

Order = Literal["oldest", "newest", "newest_page"]


def order_of(found: Sequence[PostRows], following: Mapping[str, OpenedPage]) -> Order:
    """Return the `order` of `[pages.comments]`: by the dates of the rows of first pages, and of those of the pages that follow
    (`following`, by the first page's address). Posts within posts do not count.
    """
    after = {one.page.url: post_rows(page) for one in found if (page := following.get(one.page.url)) is not None}
    rows = [goes_back for one in [*found, *filter(None, after.values())] if (goes_back := _goes_back(_dates(one))) is not None]
    pages = {
        goes_back
        for one in found
        if (later := after.get(one.page.url)) is not None and (goes_back := _are_before(_dates(later), _dates(one))) is not None
    }
    are_back = bool(rows) and all(rows)
    if pages == {True}:
        return "newest_page" if rows and not any(rows) else "newest"
    return "newest" if not pages and are_back and len(rows) >= _LEAST else "oldest"


def _dates(one: PostRows) -> list[datetime | None]:
    blocks = one.fields.paths.blocks
    return [one.fields.dates.published[number] for number in one.numbers if blocks[number].around is None]


def _goes_back(dates: list[datetime | None]) -> bool | None:
    """Return True if each post is as old as the one before it, or older; None where that is not known."""
    moments = [moment for moment in dates if moment is not None]
    if len(moments) < len(dates) or len(set(moments)) < 2:
        return None
    return moments == sorted(moments, reverse=True)


def _are_before(later: Iterable[datetime | None], first: Iterable[datetime | None]) -> bool | None:
    """Return True if the posts of the second page are older than those of the first; None where that is not known."""
    behind, ahead = ([moment for moment in dates if moment is not None] for dates in (later, first))
    if not behind or not ahead or max(*behind, *ahead) == min(*behind, *ahead):
        return None
    return max(behind) <= min(ahead)


def begins_each_page(found: Sequence[PostRows], following: Mapping[str, OpenedPage], rows: str) -> bool:
    """Return True if second pages (`following`, by the address of the first) begin with the same row as the first pages."""
    pairs = [(one.page.root, page.root) for one in found if (page := following.get(one.page.url)) is not None]
    firsts = [(_first(rows, first), _first(rows, later)) for first, later in pairs]
    return bool(firsts) and all(first and first == later for first, later in firsts)


def _first(rows: str, root: Any) -> str:
    """Return the words of the first row."""
    return words_of(next(iter(compiled("html", rows)(root)), None))


def title_selector(roots: Sequence[Any]) -> str:
    """Return a selector of the heading, or of the window's title."""
    return "title" if any(root.find(".//h1") is None for root in roots) else "h1"


_LEAST_NAMES = 3
_MOSTLY = 0.8


def of_name_alone(elements: Sequence[Any]) -> list[Any]:
    """Return the part of each author's element (None where a post has none) that is the name: its first child, where the rest
    differs no more than the names do; else the elements unchanged.
    """
    parts = [_part(one) if one is not None else None for one in elements]
    found = [part for part in parts if part is not None]
    names, others = {words_of(name) for name, _ in found}, {other for _, other in found}
    known = sum(one is not None for one in elements)
    if len(found) < _MOSTLY * known or len(names) < _LEAST_NAMES or len(others) > len(names):
        return list(elements)
    return [part[0] if part is not None else one for part, one in zip(parts, elements, strict=True)]


def badge_selectors(authors: Sequence[tuple[BlockPaths, int]]) -> list[str]:
    """Return selectors, within the elements of authors, of the badges in them; none where these would find other elements."""
    pairs = [(paths.tree.elements[i], [paths.tree.elements[j] for j in badges_of(paths, i)]) for paths, i in authors]
    most = max((len(badges) for _, badges in pairs), default=0)
    numbered = ([(element, next(iter(badges[n:]), None)) for element, badges in pairs] for n in range(most))
    found = list(dict.fromkeys(one for number in numbered for one in field_selectors(number, 1)))
    hits = ((badges, [hit for one in found for hit in compiled("html", one)(element)]) for element, badges in pairs)
    return found if all(set(badges) == set(hit) for badges, hit in hits) else []


def _part(element: Any) -> tuple[Any, str] | None:
    """Return the first child and the text after it; None where the element begins with text, or has nothing after the child."""
    first = next((one for one in element.iterchildren() if isinstance(one.tag, str) and words_of(one)), None)
    if first is None or (element.text or "").strip():
        return None
    name, whole = words_of(first), words_of(element)
    other = whole[len(name) :].strip() if whole.startswith(name) else ""
    return (first, other) if other else None


_LEAST_THREADS = 2  # that began before their first row
_LEAST_TEXT = 20  # characters
_HIGHEST = 6  # levels above the first row
_MOST = 0.8  # of the text above the rows
_NO_TEXT = frozenset({"script", "style", "form", "nav", "h1", "h2", "h3", "header"})


@dataclass(slots=True)
class _Above:
    """Elements of one level above the first row of a page, the element behind them with the row in it, and the parent."""

    elements: list[Any]
    texts: list[int]
    parent: Any
    behind: Any


def begin_before(found: Sequence[PostRows], listed: Mapping[str, datetime]) -> bool:
    """Return True if threads began before their first rows. `listed`: the newest dates of the list's rows, by address."""
    known = [
        (listed[one.page.url], first)
        for one in found
        if one.page.url in listed and (first := one.fields.dates.published[one.numbers[0]]) is not None
    ]
    return len(known) >= _LEAST_THREADS and all(begun < first for begun, first in known)


def article_field(found: Sequence[PostRows]) -> Any:
    """Return the field `body` of the opening post; None where no selector finds it on all pages."""
    above = [_above(one) for one in found]
    known = [one for one in above if one is not None]
    if not known or len(known) < len(above):
        return None
    alone = [_alone(one) for one in known]
    if all(one is not None for one in alone):
        pairs = [(one.page.root, element) for one, element in zip(found, alone, strict=True)]
        if selectors := field_selectors(pairs, 1):
            return selectors[0]
    parents = field_selectors([(one.page.root, level.parent) for one, level in zip(found, known, strict=True)], 1)
    behind = {_selector(one.behind) for one in known}
    if not parents or len(behind) != 1 or (name := behind.pop()) is None:
        return None
    return {
        "select": parents[0],
        "remove": list(dict.fromkeys([name, f"{name} ~ *", *(cut for one in known for cut in _cut(one))])),
    }


def _above(one: PostRows) -> _Above | None:
    """Return the level above the first row with the most text before the row."""
    tree = one.page.tree
    best: tuple[int, _Above] | None = None
    child = tree.elements.index(one.rows[0])
    for _ in range(_HIGHEST):
        up = tree.parent[child]
        if up <= 0 or tree.tag[child] == "body":
            break
        places = [j for j in _children(tree, up) if j < child]
        texts = [0 if tree.tag[j] in _NO_TEXT else tree.written_in(j) for j in places]
        if sum(texts) >= _LEAST_TEXT and (best is None or sum(texts) > best[0]):
            elements = [tree.elements[j] for j in places]
            best = sum(texts), _Above(elements, texts, tree.elements[up], tree.elements[child])
        child = up
    return best[1] if best else None


def _children(tree: Any, up: int) -> Iterator[int]:
    j = up + 1
    while j < tree.end[up]:
        yield j
        j = tree.end[j]


def _alone(level: _Above) -> Any:
    """Return the single element with nearly all of the text, if it has a class or an id."""
    most = max(range(len(level.texts)), key=level.texts.__getitem__)
    element = level.elements[most]
    return element if level.texts[most] >= _MOST * sum(level.texts) and _selector(element) else None


def _selector(element: Any) -> str | None:
    id_ = element.get("id") or ""
    return f"#{id_}" if NAME.fullmatch(id_) else class_selector(element)


def _cut(level: _Above) -> Iterator[str]:
    """Yield selectors of elements around the paragraphs: elements with a class, headings, links only to the comments."""
    for element, text in zip(level.elements, level.texts, strict=True):
        if (name := _selector(element)) is not None:
            yield name
        elif element.tag in _NO_TEXT:
            yield element.tag
        elif (
            text < _LEAST_TEXT
            and (links := list(element.iter("a")))
            and all(link.get("href", "").startswith("#") for link in links)
        ):
            yield f'{element.tag}:has(> a[href^="#"])'
