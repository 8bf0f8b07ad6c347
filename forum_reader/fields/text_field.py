"""The text of each block: the place that holds most of its words, without signatures, notes of edits and buttons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from forum_reader.page.page_tree import PageTree, Range
from forum_reader.readers.block_paths import BlockPaths, Place

from . import post_marks
from .text_cuts import find_cuts, follows_author

_TEXT_PROPERTIES = frozenset({"text", "articleBody", "commentText", "description"})
_HOLDER = 0.35  # factor of places that also hold author and date
_BODY = 1.3  # factor of places whose class marks a text
_MOST_HAVE = 0.5  # of the blocks
_PARAGRAPHS = frozenset({"p", "font", "span"})
_OF_TEXTS = frozenset({"blockquote", "pre", "ol", "ul", "p"})
_MOST_OF_ALL = 0.8  # of a text


@dataclass(slots=True)
class Body:
    """The texts of a post: a range of the page's texts, without some; `root` is the element, None for the whole block."""

    texts: Range
    root: int | None
    without: list[Range] = field(default_factory=list)


def find_bodies(paths: BlockPaths, authors: dict[int, int], dates: dict[int, int]) -> list[Body]:
    """Return the body of each block."""
    roots, several = _roots(paths, authors, dates)
    cuts = find_cuts(paths, roots, authors, dates)
    found = []
    for number, block in enumerate(paths.blocks):
        root = roots.get(number)
        if root is not None:
            texts = (paths.tree.first_text[root], paths.tree.last_text[root])
        elif number not in several and len(roots) > _MOST_HAVE * paths.count:  # a picture without words
            texts = (block.texts[0], block.texts[0])
        else:
            texts = block.texts
        without = [one for one in _merged(cuts[number]) if one[0] < texts[1] and one[1] > texts[0]]
        found.append(Body(texts, root, without))
    return found


def size_of(paths: BlockPaths, body: Body) -> int:
    """Return the number of characters of a body outside of links."""
    tree = paths.tree
    start, end = body.texts
    size = tree.written(start, end)
    for a, b in body.without:
        size -= tree.written(max(a, start), min(b, end))
    return size


def _roots(paths: BlockPaths, authors: dict[int, int], dates: dict[int, int]) -> tuple[dict[int, int], set[int]]:
    """Return the element of each body, and the blocks whose body is several paragraphs without a common element."""
    sized = [
        (sum(map(paths.tree.size, place.first.values())), place.path)
        for place in paths.places[1:]
        if paths.presence(place) >= 0.5
        and (place.count <= len(place.first) or (place.count <= 1.3 * len(place.first) and not _is_paragraph(paths, place)))
    ]
    best, best_score = None, 0.0
    for size, path in sorted(sized, reverse=True):
        if _BODY * size <= best_score:  # no score is more
            break
        score = _score(paths, paths.places[path], authors, dates)
        if score > best_score and follows_author(paths, paths.places[path], authors):
            score *= 0.1
        if score > best_score:
            best, best_score = paths.places[path], score
    found = _narrowed(paths, best) if best is not None else {}

    def marks(number: int) -> list[int]:
        return [one for one in (authors.get(number), dates.get(number)) if one is not None]

    like = _Like(paths, found, marks)
    several: set[int] = set()
    for number in range(paths.count):
        if number not in found and (other := _in_other_markup(paths, number, like, marks(number))) is not None:
            if _has_more_paragraphs(paths, number, other, marks(number)):
                several.add(number)
            else:
                found[number] = other
    return found, several


def _has_more_paragraphs(paths: BlockPaths, number: int, body: int, marks: list[int]) -> bool:
    tree, block = paths.tree, paths.blocks[number]
    up = tree.parent[body]
    if tree.tag[body] != "p" or up >= block.start:
        return False
    others = (i for i in paths.own[number] if i != body and tree.parent[i] == up and tree.tag[i] == "p")
    return any(not any(_is_in(tree, i, one) for one in marks) for i in others)


class _Like:
    """Common markup of the bodies that were found: `signs`, and `pairs` with their parents' signs; `others`: paths of blocks
    with a body that do not lead to it; `hold_marks`: author or date stand in most bodies.
    """

    def __init__(self, paths: BlockPaths, bodies: dict[int, int], marks: Callable[[int], list[int]]) -> None:
        tree = paths.tree
        self.signs = {tree.sign[i] for i in bodies.values()}
        self.pairs = {(tree.sign[i], tree.sign[tree.parent[i]]) for i in bodies.values()}
        around: set[int] = set()
        for path in {paths.path_of[i] for i in bodies.values()}:
            while path >= 0 and path not in around:
                around.add(path)
                path = paths.places[path].above
        marked = [bodies[number] for number in bodies if any(_is_in(tree, bodies[number], i) for i in marks(number))]
        self.hold_marks = len(marked) > _MOST_HAVE * len(bodies)
        self.others = {paths.path_of[i] for number in bodies for i in paths.own[number]} - around


def _score(paths: BlockPaths, place: Place, authors: dict[int, int], dates: dict[int, int]) -> float:
    held = holds = 0.0
    tree = paths.tree
    for number, i in place.first.items():
        if i == paths.blocks[number].start and number in paths.odd:
            continue  # the whole of a post with other markup than the others
        held += paths.own_size(number, i) - 0.5 * paths.link_size(i)
        for other in (authors.get(number), dates.get(number)):
            holds += other is not None and i <= other < tree.end[i]
    if place.count > len(place.first) and holds:
        return 0.0
    sample = list(place.first.values())[:4]
    body = any(_is_body(paths, i) for i in sample)
    meta = not body and any(post_marks.suggests_meta(paths.names(i)) for i in sample)
    factor = (_BODY if body else 1.0) * (0.15 if meta else 1.0) * (_HOLDER if holds > 0.34 * len(place.first) else 1.0)
    return held * factor


def _is_paragraph(paths: BlockPaths, place: Place) -> bool:
    return any(paths.tree.tag[i] in _PARAGRAPHS for i in place.first.values())


def _is_body(paths: BlockPaths, i: int) -> bool:
    return post_marks.suggests_body(paths.names(i)) or paths.tree.attributes[i].get("itemprop") in _TEXT_PROPERTIES


def _narrowed(paths: BlockPaths, place: Place) -> dict[int, int]:
    """Return the deepest element of each block that holds nearly all of the text of `place`."""
    found = dict(place.first)
    while True:
        size = sum(paths.own_size(number, i) for number, i in place.first.items())
        for child in paths.children(place):
            if child.count > 1.05 * len(child.first) or len(child.first) < 0.97 * len(place.first):
                continue
            inner = sum(paths.own_size(number, i) for number, i in child.first.items())
            sample = list(child.first.values())[:4]
            if any(post_marks.suggests_signature(paths.names(i)) for i in sample):
                continue
            if paths.tree.tag[sample[0]] in _PARAGRAPHS and (inner == size or _stands_next_to_text(paths, child)):
                continue
            is_cell = paths.tree.tag[sample[0]] == "td"  # the other columns hold details of the author
            if inner >= (0.5 if is_cell or any(_is_body(paths, i) for i in sample) else 0.85) * size:
                place = child
                found |= child.first
                break
        else:
            return found


def _stands_next_to_text(paths: BlockPaths, place: Place) -> bool:
    """Return True if more of the text stands next to a place: a quote, a list."""
    tree = paths.tree
    return any(
        j != i and tree.tag[j] in _OF_TEXTS and tree.size(j) and tree.parent[j] == tree.parent[i]
        for i in place.first.values()
        for j in range(tree.parent[i] + 1, tree.end[tree.parent[i]])
    )


def _is_in(tree: PageTree, root: int, i: int) -> bool:
    return root <= i < tree.end[root]


def _in_other_markup(paths: BlockPaths, number: int, like: _Like, marks: list[int]) -> int | None:
    """Find the body of a block whose markup differs from the others', not at a place that these have besides their bodies."""
    tree = paths.tree
    best, best_size = None, 0.0
    for i in paths.own[number]:
        holds = any(_is_in(tree, i, one) for one in marks)
        if paths.path_of[i] in like.others or (holds and not like.hold_marks):
            continue
        known = tree.sign[i] in like.signs and bool(tree.attributes[i])
        same = (tree.sign[i], tree.sign[tree.parent[i]]) in like.pairs
        factor = (
            100.0
            if same
            else 3.0
            if known
            else 1.3
            if _is_body(paths, i)
            else 0.15
            if post_marks.suggests_meta(paths.names(i))
            else 1.0
        )
        size = (paths.own_size(number, i) - 0.7 * paths.link_size(i)) * factor * (_HOLDER if holds and not known else 1.0)
        if size > best_size:
            best, best_size = i, size
    if best is None:
        return None
    up = tree.parent[best]
    if tree.tag[best] == "p" and up >= paths.blocks[number].start and up in paths.number_of:
        others = [j for j in range(up + 1, tree.end[up]) if tree.parent[j] == up and tree.tag[j] == "p" and tree.size(j)]
        holds = any(_is_in(tree, up, one) for one in marks) and sum(map(tree.size, others)) < _MOST_OF_ALL * tree.size(up)
        if len(others) > 1 and not holds and paths.path_of[up] not in like.others:
            return up  # one of several paragraphs
    return best


def _merged(ranges: list[Range]) -> list[Range]:
    found: list[Range] = []
    for start, end in sorted(ranges):
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        elif start < end:
            found.append((start, end))
    return found
