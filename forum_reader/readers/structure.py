"""Posts by the structure that they repeat, their fields, and an opening post whose markup is unlike the answers': a question
above its answers, an article above its comments.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from forum_reader.dates.dates_in_text import LONGEST
from forum_reader.dates.post_calendar import Calendar
from forum_reader.fields.author_field import find_authors, name_of, profile_of
from forum_reader.fields.author_names import AROUND, find_names, is_byline
from forum_reader.fields.date_field import Dates, find_dates, find_edits, find_ids
from forum_reader.fields.post_marks import Marks
from forum_reader.fields.text_field import Body, find_bodies, size_of
from forum_reader.page.page_tree import PageTree
from forum_reader.page.records import SeenPost

from .block_paths import BlockPaths
from .checks import order
from .repeated_blocks import Block, BlockSet, block_sets, without

_TARGET = re.compile(r"(?<![0-9A-Za-z])([0-9A-Za-z]++)/?$")
_MOST = 0.85  # of the text of a page, that posts hold at most: more is taken from around them


@dataclass(slots=True)
class Fields:
    """Author, date and body of each block, by its number; `names` of authors outside elements; `quality` is 0 to 1."""

    found: BlockSet
    paths: BlockPaths
    authors: dict[int, int]
    names: dict[int, str]
    dates: Dates
    bodies: list[Body]
    quality: float = 0.0

    def author(self, number: int) -> str | None:
        """Return the author's name."""
        return name_of(self.paths, self.authors[number]) if number in self.authors else self.names.get(number)


def read_fields(tree: PageTree, marks: Marks, found: BlockSet, calendar: Calendar, words: int) -> Fields:
    """Find author, date and body of each block of a set. `words`: characters of the page outside of links."""
    paths = BlockPaths(tree, marks, found.blocks)
    authors = find_authors(paths)
    dates = find_dates(paths, calendar, authors)
    fields = Fields(found, paths, authors, find_names(paths, authors), dates, find_bodies(paths, authors, dates.elements))
    fields.quality = _quality(fields, words)
    return fields


def posts_of(fields: Fields, calendar: Calendar) -> tuple[SeenPost, ...]:
    """Return the posts, in the order of the page."""
    paths, tree = fields.paths, fields.paths.tree
    ids, urls = find_ids(paths)
    edits = find_edits(paths, calendar, fields.dates)
    places = {id_: number for number, id_ in enumerate(ids) if id_ is not None}
    posts = []
    for number, body in enumerate(fields.bodies):
        around = paths.blocks[number].around
        author = fields.authors.get(number)
        posts.append(
            SeenPost(
                text=_without_name(tree.joined(*body.texts, body.without), fields.names.get(number)),
                id=ids[number],
                author=fields.author(number),
                author_url=profile_of(paths, author) if author is not None else None,
                published=fields.dates.published[number],
                edited=edits[number],
                parent=ids[around] if around is not None else _linked(fields, number, places),
                url=urls[number],
            )
        )
    return tuple(posts)


_ANSWERED = re.compile(
    r"^@|\bparent\b|repl(?:y|ied|ies) to|respon(?:se|ded) to|original (?:post|message)|antwort auf|en réponse|respuesta a|"
    r"в ответ|^[\u2191\u21b0\u21a9\u2934]|^>>",
    re.IGNORECASE,
)
_PARENT_MARKS = ("data-parent-id", "data-parentid", "data-parent", "data-reply-to", "data-in-reply-to", "data-reply-to-id")
_LAST_NUMBER = re.compile(r"\d{1,20}$")


def _linked(fields: Fields, number: int, places: dict[str, int]) -> str | None:
    """Return the id of the post to which a link outside of a post's text leads as to the answered one: `parent`, `@ida`, or with
    its author's name. `places`: numbers of posts by id.
    """
    tree, body = fields.paths.tree, fields.bodies[number].root
    attributes = tree.attributes[fields.paths.blocks[number].start]
    named = _LAST_NUMBER.search(next((attributes[name] for name in _PARENT_MARKS if name in attributes), ""))
    if named is not None and places.get(named[0], number) != number:
        return named[0]
    for i in fields.paths.own[number]:
        href = tree.attributes[i].get("href") if tree.tag[i] == "a" else None
        if not href or (body is not None and body <= i < tree.end[body]):
            continue
        match = _TARGET.search(href)
        answered = places.get(match[1]) if match else None
        if match is None or answered is None or answered == number:
            continue
        shown = f"{tree.string(i)} {tree.attributes[i].get('title', '')}".strip()
        if _ANSWERED.search(shown) or ((name := fields.author(answered)) and name in shown and name != fields.author(number)):
            return match[1]
    return None


def _without_name(text: str, name: str | None) -> str:
    """Return a post's text without a first line that is only the name, whose label was cut."""
    first, _, rest = text.partition("\n")
    return rest.lstrip("\n") if name is not None and rest and first.strip(AROUND) == name.strip(AROUND) else text


def _quality(fields: Fields, words: int) -> float:
    paths, count = fields.paths, fields.paths.count
    texts = [_raw(paths, body) for body in fields.bodies]
    filled = [text for text in texts if text]
    if not filled:
        return 0.0
    dates = [date for date in fields.dates.published if date is not None]
    share = min(1.0, sum(size_of(paths, body) for body in fields.bodies) / (_MOST * words))
    if share <= 0:
        return 0.0
    complete = (0.3 + 0.7 * (len(fields.authors) + len(fields.names)) / count) * (
        0.3 + 0.6 * len(dates) / count + 0.1 * order(dates)
    )
    plausible = (len(filled) / count) * (len(set(filled)) / len(filled))
    return float(share**0.6 * plausible * complete * (0.3 + 0.7 * fields.found.alone) * (0.4 + 0.6 * fields.found.alike))


def _raw(paths: BlockPaths, body: Body) -> str:
    """Return a body's text unchanged from the page: exact enough to compare bodies."""
    texts = paths.tree.texts
    start, end = body.texts
    parts = []
    for a, b in [*body.without, (end, end)]:
        parts += texts[start:a]
        start = max(start, b)
    return "".join(parts).strip()


_LEAST_TEXT = 20  # characters
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "title"})
_A_DAY = 3  # precision of a date: a month and a year are of a title


def with_lead(tree: PageTree, marks: Marks, found: BlockSet) -> BlockSet | None:
    """Return the set with a block before the first one; None where nothing there may be a post."""
    first = min(found.blocks, key=lambda block: block.start)
    outer = [block for block in found.blocks if block.around is None]
    child = first.start
    last = max(block.end for block in outer)
    up = tree.parent[child]
    while up > 0 and tree.end[up] < last:  # the element that has all of them
        child, up = up, tree.parent[up]
    dates = sorted(marks.dates)
    while up >= 0:
        block = _before(tree, marks, dates, up, child)
        if block is not None:
            others = [replace(one, around=None if one.around is None else one.around + 1) for one in found.blocks]
            return BlockSet([block, *others], found.score, found.alone, found.alike, has_lead=True)
        child, up = up, tree.parent[up]
    return None


def _before(tree: PageTree, marks: Marks, dates: list[int], up: int, child: int) -> Block | None:
    """Return, of the elements before `child` in `up`, those from the first with a date or an author to the last with text."""
    start = None
    sibling = up + 1
    while sibling < child:
        if start is None and (_has(dates, sibling, tree.end[sibling]) or _has(marks.authors, sibling, tree.end[sibling])):
            start = sibling
        sibling = tree.end[sibling]
    if start is None:
        return None
    texts = (tree.first_text[start], tree.first_text[child])
    chars = tree.written(*texts)
    if chars < _LEAST_TEXT or not _has(dates, start, child):
        return None
    if not _has(marks.authors, start, child) and not _has_byline(tree, dates, start, child):
        return None
    end = child
    single = start
    if tree.end[start] >= child or tree.size(start) > 0.8 * (tree.chars[texts[1]] - tree.chars[texts[0]]):
        end = tree.end[single]
        texts = (tree.first_text[start], tree.last_text[start])
    return Block(start, end, texts)


def _has_byline(tree: PageTree, dates: list[int], start: int, end: int) -> bool:
    return any(
        is_byline(tree.string(i)) for i in dates[bisect_left(dates, start) : bisect_left(dates, end)] if tree.size(i) <= LONGEST
    )


def _has(elements: list[int], start: int, end: int) -> bool:
    place = bisect_left(elements, start)
    return place < len(elements) and elements[place] < end


def _are_one(fields: Fields, date: datetime, after: datetime) -> bool:
    """Return True if the dates of the first two blocks may be the same: on one day, and not in different minutes."""
    spotted = [fields.paths.marks.dates.get(fields.dates.elements.get(number, -1)) for number in (0, 1)]
    exact = all(one is not None and one.hour is not None for one in spotted)
    return date.date() == after.date() and not (exact and abs(date - after) >= timedelta(minutes=1))


def _has_body_of_answer(fields: Fields) -> bool:
    """Return True if the texts of the first two blocks differ and have the same class."""
    tree, (first, second) = fields.paths.tree, fields.bodies[:2]
    if first.root is None or second.root is None or not tree.attributes[first.root].get("class"):
        return False
    return tree.sign[first.root] == tree.sign[second.root] and tree.string(first.root) != tree.string(second.root)


def is_post(fields: Fields) -> bool:
    """Return True if the first block is one more post, and not a heading that repeats author and date of the first answer."""
    tree, body = fields.paths.tree, fields.bodies[0]
    author, date = fields.author(0), fields.dates.published[0]
    if (
        not author
        or date is None
        or fields.paths.marks.dates[fields.dates.elements[0]].precision < _A_DAY
        or not tree.joined(*body.texts, body.without)
    ):
        return False
    if body.root is not None and tree.tag[body.root] in _HEADINGS:
        return False
    after = fields.dates.published[1]
    if after is not None and author == fields.author(1) and _are_one(fields, date, after) and not _has_body_of_answer(fields):
        return False
    back = fields.paths.marks.dates[fields.dates.elements[0]].back  # `over a year ago` is up to two
    return after is None or date <= after + max(timedelta(days=1), back or timedelta(0))


_SUPERSET = 0.88  # of the best quality: a set that has all its blocks, and more
_SUPERSET_MARKED = 0.95  # of the share of blocks with author and date
_ADVERTISERS = frozenset(
    ("ad", "ads", "advert", "advertisement", "advertisements", "anzeige", "werbung", "publicité", "publicidad", "реклама", "广告")
)
_ENOUGH = 0.4  # a quality that sets with a score far behind are not read for
_BEHIND = 0.8
_GOOD = 0.85  # a quality that only a set of more blocks is read for
_SCORE = 0.2  # how far the score of a set decides between qualities that are nearly the same


@dataclass(slots=True)
class PostPattern:
    """The inferred posts, and their quality (0 to 1)."""

    posts: tuple[SeenPost, ...]
    quality: float
    fields: Fields


def infer_posts(tree: PageTree, calendar: Calendar, marks: Marks) -> PostPattern | None:
    """Infer the posts of a page from its repeated structure; None where nothing repeats."""
    words = max(1, tree.chars[-1] - tree.link_chars[-1])
    read: list[Fields] = []
    for found in block_sets(tree, marks):
        if read and found.score < _BEHIND * read[0].found.score and max(one.quality for one in read) > _ENOUGH:
            break
        if not any(one.quality >= _GOOD and len(found.blocks) <= one.paths.count for one in read):
            read.append(read_fields(tree, marks, found, calendar, words))
    if not read:
        return None
    best = _best(read)
    if len(_only_links(tree, best)) == best.paths.count - 1:
        return None  # one post, and a list of other threads
    if (fewer := _only_posts(best)) is not None:
        best = read_fields(tree, marks, fewer, calendar, words)
    best = _with_lead(tree, marks, best, calendar, words)
    return PostPattern(posts_of(best, calendar), best.quality, best)


def _marked(fields: Fields) -> float:
    """Return the share of blocks' authors and dates that were found."""
    return (len(fields.authors) + len(fields.dates.elements)) / (2 * fields.paths.count)


def _with_lead(tree: PageTree, marks: Marks, best: Fields, calendar: Calendar, words: int) -> Fields:
    """Add an opening post whose markup differs from the answers'; it replaces a first block that is only its head."""
    sets = [best.found]
    signs = [tree.sign[block.start] for block in best.found.blocks]
    if len(signs) > 2 and signs[0] not in signs[1:]:
        sets.append(without(tree, best.found, {0}))
    for found in sets:
        if (extended := with_lead(tree, marks, found)) is None:
            continue
        more = read_fields(tree, marks, extended, calendar, words)
        if is_post(more) and (found is best.found or size_of(more.paths, more.bodies[0]) > size_of(best.paths, best.bodies[0])):
            more.quality = max(more.quality, best.quality)
            return more
    return best


def _only_posts(fields: Fields) -> BlockSet | None:
    """Return the set without blocks that are not posts: blocks without author and date, blocks around others that lack one of
    them where nearly all have both, and a first block with other markup. None where all are posts.
    """
    blocks, tree = fields.found.blocks, fields.paths.tree
    count = len(blocks)
    missing = [(fields.author(n) is None) + (fields.dates.published[n] is None) for n in range(count)]
    out = {
        n
        for n in range(count)
        if missing[n] == 2 or (fields.author(n) or "").lower() in _ADVERTISERS or (missing[n] and blocks[n].inner)
    }
    out |= _only_links(tree, fields)
    if missing.count(0) < 0.75 * (count - len(out)):
        out = set()
    signs = [tree.sign[block.start] for block in blocks]
    if count > 2 and signs[0] not in signs[1:] and not is_post(fields):
        out.add(0)
    return without(tree, fields.found, out) if out and count - len(out) > 1 else None


def _only_links(tree: PageTree, fields: Fields) -> set[int]:
    """Return blocks whose text is only a link, with other markup than all blocks with text: similar threads below the posts."""
    sizes = [size_of(fields.paths, body) for body in fields.bodies]
    signs = [tree.sign[block.start] for block in fields.found.blocks]
    with_text = {sign for sign, size in zip(signs, sizes, strict=True) if size}
    return {
        number
        for number, (sign, size) in enumerate(zip(signs, sizes, strict=True))
        if not size and sign not in with_text and fields.bodies[number].root is not None
    }


def _best(read: list[Fields]) -> Fields:
    """Return the set of the highest quality, or a superset of its blocks that is nearly as good."""
    best = max(read, key=lambda one: one.quality * one.found.score**_SCORE)
    starts = {block.start for block in best.found.blocks}
    for one in read:
        others = {block.start for block in one.found.blocks}
        if (
            starts < others
            and _marked(one) >= _SUPERSET_MARKED * _marked(best)
            and one.quality >= _SUPERSET * best.quality
            and one.found.alike >= 0.9 * best.found.alike
        ):
            best, starts = one, others
    return best
