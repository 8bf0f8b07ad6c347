"""Texts of a block that are not its post's: author and date, notes of edits, signatures, buttons, details of the author."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from forum_reader.dates.dates_in_text import LONGEST, spotted
from forum_reader.page.page_tree import PageTree, Range
from forum_reader.readers.block_paths import BlockPaths, Place

from . import post_marks
from .author_field import name_of

_NUMBER = re.compile(r"#?\d[\d.,:]{0,12}")
_MOST_HAVE = 0.5  # of the blocks
_MOST_BUTTONS = 40  # characters in one line with author and date
_MOST_BEFORE = 4  # texts of a body before its date
_LABEL = 160  # characters of a text that is the same in most posts: `ida replied to: Lamps`
_NOT_SHOWN = re.compile(r"display\s*:\s*none", re.IGNORECASE)
_LONGEST_FIXED = 1000  # characters of a text below a name
_MOST_FEET = 5  # elements at the end of a body


def find_cuts(paths: BlockPaths, roots: dict[int, int], authors: dict[int, int], dates: dict[int, int]) -> dict[int, list[Range]]:
    """Return the texts of each block that are not the post's."""
    tree = paths.tree
    cuts: dict[int, list[Range]] = defaultdict(list)
    for number, block in enumerate(paths.blocks):
        cuts[number].extend(block.inner)
        root = roots.get(number)
        for other in (authors.get(number), dates.get(number)):
            if other is not None:
                cuts[number].extend(_own_texts(tree, other, root))
    for number, root in roots.items():
        cuts[number].extend(_heads(tree, root, authors.get(number), dates.get(number)))
        cuts[number].extend(_feet(paths, root, (authors.get(number), dates.get(number))))
    left_out: set[int] = set()
    for place in paths.places[1:]:
        if place.above in left_out:  # with the place around it
            left_out.add(place.path)
            continue
        inside = [
            (number, i) for number, i in place.first.items() if number not in roots or roots[number] < i < tree.end[roots[number]]
        ]
        if inside and (_is_not_text(paths, inside, authors) or _is_hidden(paths, place)):
            if len(inside) == place.count:
                left_out.add(place.path)
            for number, i in inside:
                cuts[number].append((tree.first_text[i], tree.last_text[i]))
    return cuts


def _own_texts(tree: PageTree, i: int, root: int | None) -> Iterator[Range]:
    """Yield the texts of an author or a date: only those outside of inner elements, where the body stands in one of these; only
    the date itself, where its element also holds the body, or is all of it or longer than a date.
    """
    around = root is not None and root < i < tree.end[root] and (tree.size(i) == tree.size(root) or tree.size(i) > LONGEST)
    if around or i == root:
        texts = [k for k in range(tree.first_text[i], tree.last_text[i]) if tree.owner[k] == i][:_MOST_BEFORE]
        yield from [(k, k + 1) for k in texts if len(tree.texts[k]) <= LONGEST and spotted(tree.texts[k])][:1]
    elif root is None or not i < root < tree.end[i]:
        yield tree.first_text[i], tree.last_text[i]
    else:
        yield from ((k, k + 1) for k in range(tree.first_text[i], tree.first_text[root]) if tree.owner[k] == i)


def _holds(paths: BlockPaths, root: int, marks: tuple[int | None, ...]) -> bool:
    return any(one is not None and root <= one < paths.tree.end[root] for one in marks)


def _heads(tree: PageTree, root: int, author: int | None, date: int | None) -> Iterator[Range]:
    """Yield the line of a body with author and date, and the buttons in it: `ida · 3 March · #1 reply`."""
    if author is None or date is None or not (root < author < tree.end[root] and root < date < tree.end[root]):
        return
    if date < author < tree.end[date]:  # it holds the text, too
        return
    up = min(author, date)
    while tree.end[up] <= max(author, date):
        up = tree.parent[up]
    if up > root and tree.size(up) - tree.size(author) - tree.size(date) <= _MOST_BUTTONS:
        yield tree.first_text[up], tree.last_text[up]


def _feet(paths: BlockPaths, root: int, marks: tuple[int | None, ...]) -> Iterator[Range]:
    """Yield the last parts of a body whose class marks tags, buttons or votes, or that hold author or date and little else."""
    tree = paths.tree
    last = tree.last_text[root]
    for _ in range(_MOST_FEET):
        if last - 1 <= tree.first_text[root]:
            return
        i = tree.owner[last - 1]
        while i > root and tree.parent[i] != root:
            i = tree.parent[i]
        if i <= root or tree.first_text[i] <= tree.first_text[root]:
            return
        is_fixed = tree.size(i) <= _LABEL and _holds(paths, i, marks)
        if not (is_fixed or post_marks.suggests_meta(paths.names(i))) or post_marks.suggests_body(paths.names(i)):
            return
        yield tree.first_text[i], last
        last = tree.first_text[i]


def _is_not_text(paths: BlockPaths, inside: list[tuple[int, int]], authors: dict[int, int]) -> bool:
    tree = paths.tree
    sample = [i for _, i in inside[:4]]
    names = [paths.names(i) for i in sample]
    if all(post_marks.suggests_signature(name) for name in names):
        return True
    if len(inside) >= 3 and len(inside) >= 0.5 * paths.count and all(tree.size(i) < _LABEL for _, i in inside):
        if all(_NUMBER.fullmatch(paths.string(i)) for _, i in inside):
            return True
        if 2 * sum(_is_in_sentence(tree, i) for _, i in inside) > len(inside):
            return False
        texts = {_without_name(paths, number, i, authors) for number, i in inside}
        return len(texts) <= max(1, 0.25 * len(inside)) and not any(text.startswith("@") for text in texts)
    return False


def _is_in_sentence(tree: PageTree, i: int) -> bool:
    """Return True if words of the element's parent stand on both sides in its line: `See [the manual] for more.`"""
    first, last = tree.first_text[i], tree.last_text[i]
    if not 0 < first < last < len(tree.texts) or max(tree.gap[first], tree.gap[last]) > 1:
        return False
    around = [tree.texts[k] for k in (first - 1, last) if tree.owner[k] == tree.parent[i]]
    return len(around) == 2 and all(any(char.isalpha() for char in text) for text in around)


def _is_hidden(paths: BlockPaths, place: Place) -> bool:
    """Return True if a place of most posts is not shown: a form, a copy for quotes. Spoilers are in few posts."""
    attributes = paths.tree.attributes
    return paths.presence(place) > _MOST_HAVE and all(
        "hidden" in attributes[i] or _NOT_SHOWN.search(attributes[i].get("style", "")) for i in place.first.values()
    )


def _without_name(paths: BlockPaths, number: int, i: int, authors: dict[int, int]) -> str:
    text = paths.string(i)
    return text.replace(name_of(paths, authors[number]), "", 1) if number in authors else text


def follows_author(paths: BlockPaths, place: Place, authors: dict[int, int]) -> bool:
    """Return True if each author has one and the same text in all posts, like the details under a name."""
    by_author: dict[str, list[int]] = defaultdict(list)
    size = paths.tree.size
    for number, i in place.first.items():
        if number in authors and size(i) < _LONGEST_FIXED:
            by_author[paths.string(authors[number])].append(i)
    several = [elements for elements in by_author.values() if len(elements) > 1]
    least = 0.7 * len(several)
    alike = [elements for elements in several if len({size(i) for i in elements}) == 1]
    return len(alike) > least and sum(len({paths.string(i) for i in elements}) == 1 for elements in alike) > least
