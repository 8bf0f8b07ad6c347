"""The text of each block: the place that holds most of its words, without signatures, notes of edits and buttons."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from . import class_words
from .block_paths import BlockPaths, Place
from .date_field import begins_with_edit
from .page_tree import PageTree, Range

_TEXT_PROPERTIES = frozenset({"text", "articleBody", "commentText", "description"})
_HOLDER = 0.35  # what holds author and date, too, is taken where nothing else holds half as much
_NUMBER = re.compile(r"#?\d{1,6}\.?")
_LONGEST_NOTE = 200  # characters of a note that a post was edited
_MOST_PLACES = 20
_MOST_HAVE = 0.5  # of the blocks
_SHORT = 80  # characters of a button


@dataclass(slots=True)
class Body:
    """The texts of a post: a range of the page's texts, without some; `root` is the element, None for the whole block."""

    texts: Range
    root: int | None
    without: list[Range] = field(default_factory=list)
    signature: int | None = None


def find_bodies(paths: BlockPaths, authors: dict[int, int], dates: dict[int, int]) -> list[Body]:
    """The body of each block."""
    roots = _roots(paths, authors, dates)
    cuts, signatures = _cuts(paths, roots, authors, dates)
    found = []
    for number, block in enumerate(paths.blocks):
        root = roots.get(number)
        if root is not None:
            texts = (paths.tree.first_text[root], paths.tree.last_text[root])
        elif len(roots) > _MOST_HAVE * paths.count:  # a picture without words
            texts = (block.texts[0], block.texts[0])
        else:
            texts = block.texts
        without = [one for one in _merged(cuts[number]) if one[0] < texts[1] and one[1] > texts[0]]
        found.append(Body(texts, root, without, signatures.get(number)))
    return found


def size_of(paths: BlockPaths, body: Body) -> int:
    """Characters of a body that are not in links."""
    tree = paths.tree
    start, end = body.texts
    size = tree.chars[end] - tree.chars[start] - (tree.link_chars[end] - tree.link_chars[start])
    for a, b in body.without:
        a, b = max(a, start), min(b, end)
        size -= tree.chars[b] - tree.chars[a] - (tree.link_chars[b] - tree.link_chars[a])
    return size


def _roots(paths: BlockPaths, authors: dict[int, int], dates: dict[int, int]) -> dict[int, int]:
    scored = [
        (_score(paths, place, authors, dates), place.path)
        for place in paths.places[1:]
        if paths.presence(place) >= 0.5 and place.count <= 1.3 * len(place.first)
    ]
    best, best_score = None, 0.0
    for score, path in sorted(scored, reverse=True)[:_MOST_PLACES]:
        if score <= best_score:
            break
        if _follows_author(paths, paths.places[path], authors):
            score *= 0.1
        if score > best_score:
            best, best_score = paths.places[path], score
    found = _narrowed(paths, best) if best is not None else {}

    def marks(number: int) -> list[int]:
        return [one for one in (authors.get(number), dates.get(number)) if one is not None]

    like = _Like(paths, found, marks)
    for number in range(paths.count):
        if number not in found and (other := _made_otherwise(paths, number, like, marks(number))) is not None:
            found[number] = other
    return found


class _Like:
    """What the bodies that were found look like: `signs`, `pairs` with those of their parents; `others` are the paths of blocks
    with a body that are not on the way to it; `hold_marks`: author or date stand in most of them.
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
        held += paths.own_size(number, i) - 0.5 * paths.link_size(i)
        for other in (authors.get(number), dates.get(number)):
            holds += other is not None and i <= other < tree.end[i]
    if place.count > len(place.first) and holds:
        return 0.0
    sample = list(place.first.values())[:4]
    body = any(_is_body(paths, i) for i in sample)
    meta = not body and any(class_words.says_meta(paths.names(i)) for i in sample)
    factor = (1.3 if body else 1.0) * (0.15 if meta else 1.0) * (_HOLDER if holds > 0.34 * len(place.first) else 1.0)
    return held * factor


def _follows_author(paths: BlockPaths, place: Place, authors: dict[int, int]) -> bool:
    """Whether each author has one and the same text in all posts, as what stands under a name."""
    texts: dict[str, set[str]] = defaultdict(set)
    posts: Counter[str] = Counter()
    for number, i in place.first.items():
        if number in authors and paths.tree.size(i) < 1000:
            name = paths.string(authors[number])
            texts[name].add(paths.string(i))
            posts[name] += 1
    several = [name for name, count in posts.items() if count > 1]
    return bool(several) and sum(len(texts[name]) == 1 for name in several) > 0.7 * len(several)


def _is_body(paths: BlockPaths, i: int) -> bool:
    return class_words.says_body(paths.names(i)) or paths.tree.attributes[i].get("itemprop") in _TEXT_PROPERTIES


def _narrowed(paths: BlockPaths, place: Place) -> dict[int, int]:
    """Of each block the deepest element that holds nearly all of the text of `place`."""
    found = dict(place.first)
    while True:
        size = sum(paths.own_size(number, i) for number, i in place.first.items())
        for child in paths.children(place):
            if child.count > 1.05 * len(child.first) or len(child.first) < 0.97 * len(place.first):
                continue
            inner = sum(paths.own_size(number, i) for number, i in child.first.items())
            sample = list(child.first.values())[:4]
            if any(class_words.says_signature(paths.names(i)) for i in sample):
                continue
            if inner >= (0.5 if any(_is_body(paths, i) for i in sample) else 0.85) * size:
                place = child
                found |= child.first
                break
        else:
            return found


def _is_in(tree: PageTree, root: int, i: int) -> bool:
    return root <= i < tree.end[root]


def _made_otherwise(paths: BlockPaths, number: int, like: _Like, marks: list[int]) -> int | None:
    """The body of a block that is made otherwise than the others: not what those have besides their bodies."""
    tree = paths.tree
    best, best_size = None, 0.0
    for i in paths.own[number]:
        if paths.path_of[i] in like.others or (not like.hold_marks and any(_is_in(tree, i, one) for one in marks)):
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
            if class_words.says_meta(paths.names(i))
            else 1.0
        )
        size = (paths.own_size(number, i) - 0.7 * paths.link_size(i)) * factor
        if size > best_size:
            best, best_size = i, size
    return best


def _cuts(
    paths: BlockPaths, roots: dict[int, int], authors: dict[int, int], dates: dict[int, int]
) -> tuple[dict[int, list[Range]], dict[int, int]]:
    """Of each block the texts that are not the post's, and the element of its signature."""
    tree = paths.tree
    cuts: dict[int, list[Range]] = defaultdict(list)
    signatures: dict[int, int] = {}
    for number, block in enumerate(paths.blocks):
        cuts[number].extend(block.inner)
        for other in (authors.get(number), dates.get(number)):
            if other is not None:
                cuts[number].extend(_own_texts(tree, other, roots.get(number)))
    if sum(_holds(paths, root, (authors.get(number), dates.get(number))) for number, root in roots.items()) > 0.34 * paths.count:
        for number, labels in _labels(paths, roots).items():
            cuts[number].extend(labels)
    for number, root in roots.items():
        cuts[number].extend(_edit_notes(paths, number, root))
    for place in paths.places[1:]:
        if all(class_words.says_signature(paths.names(i)) for i in list(place.first.values())[:3]):
            for number, i in place.first.items():
                signatures.setdefault(number, i)
        inside = [
            (number, i) for number, i in place.first.items() if number not in roots or roots[number] < i < tree.end[roots[number]]
        ]
        if inside and _is_not_text(paths, inside):
            for number, i in inside:
                cuts[number].append((tree.first_text[i], tree.last_text[i]))
    return cuts, signatures


def _own_texts(tree: PageTree, i: int, root: int | None) -> Iterator[Range]:
    """The texts of an author or a date; only those outside of further elements, where the body stands in one of these."""
    if root is None or not i < root < tree.end[i]:
        yield tree.first_text[i], tree.last_text[i]
        return
    yield from ((k, k + 1) for k in range(tree.first_text[i], tree.first_text[root]) if tree.owner[k] == i)


def _holds(paths: BlockPaths, root: int, marks: tuple[int | None, ...]) -> bool:
    return any(one is not None and root <= one < paths.tree.end[root] for one in marks)


def _labels(paths: BlockPaths, roots: dict[int, int]) -> dict[int, list[Range]]:
    """Short texts that stand in most blocks: `says:`, `posted on`."""
    tree = paths.tree
    seen: dict[str, dict[int, list[Range]]] = defaultdict(lambda: defaultdict(list))
    for number, root in roots.items():
        for k in paths.texts_of(number, root):
            if len(tree.texts[k]) < _SHORT:
                seen[tree.texts[k].strip().lower()][number].append((k, k + 1))
    found: dict[int, list[Range]] = defaultdict(list)
    for in_blocks in seen.values():
        if len(in_blocks) > 2 and len(in_blocks) >= 0.6 * paths.count:
            for number, ranges in in_blocks.items():
                found[number] += ranges
    return found


def _edit_notes(paths: BlockPaths, number: int, root: int) -> Iterator[Range]:
    """`Last edited by somebody on Nov 21`: the largest element around a date that says so and no more."""
    tree = paths.tree
    for i in paths.dates_in(number):
        note = None
        while root < i < tree.end[root] and tree.size(i) <= _LONGEST_NOTE:
            if begins_with_edit(paths.string(i)):
                note = i
            i = tree.parent[i]
        if note is not None:
            yield tree.first_text[note], tree.last_text[note]


def _is_not_text(paths: BlockPaths, inside: list[tuple[int, int]]) -> bool:
    tree = paths.tree
    sample = [i for _, i in inside[:4]]
    names = [paths.names(i) for i in sample]
    if all(class_words.says_signature(name) for name in names):
        return True
    if all(class_words.says_edited(name) for name in names) and all(tree.size(i) < 200 for i in sample):
        return True
    if len(inside) >= 3 and len(inside) >= 0.5 * paths.count and all(tree.size(i) < _SHORT for _, i in inside):
        if all(_NUMBER.fullmatch(paths.string(i)) for _, i in inside):
            return True
        return len({paths.string(i) for _, i in inside}) <= max(1, 0.25 * len(inside))
    return False


def _merged(ranges: list[Range]) -> list[Range]:
    found: list[Range] = []
    for start, end in sorted(ranges):
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        elif start < end:
            found.append((start, end))
    return found
