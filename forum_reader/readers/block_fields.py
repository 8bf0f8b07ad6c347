"""The fields of repeated blocks, and how plausible they are together."""

from __future__ import annotations

from dataclasses import dataclass

from forum_reader.dates.post_calendar import Calendar
from forum_reader.fields.author_field import find_authors, name_of, profile_of
from forum_reader.fields.author_names import AROUND, find_names
from forum_reader.fields.date_field import Dates, find_dates, find_edits
from forum_reader.fields.id_field import find_ids
from forum_reader.fields.post_marks import Marks
from forum_reader.fields.text_field import Body, find_bodies, size_of
from forum_reader.page.page_tree import PageTree
from forum_reader.page.records import SeenPost

from .block_paths import BlockPaths
from .checks import order
from .repeated_blocks import BlockSet

_SHIFTED = 0.9
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
                parent=ids[around] if around is not None else None,
                url=urls[number],
                signature=paths.string(body.signature) if body.signature is not None else None,
            )
        )
    return tuple(posts)


def _without_name(text: str, name: str | None) -> str:
    """Return a post's text without the name before it and the dash before its date (`ida: I think so – 3 March`), and without a
    first line that is only the name, whose label was cut.
    """
    first, _, rest = text.partition("\n")
    if name is not None and rest and first.strip(AROUND) == name.strip(AROUND):
        return rest.lstrip("\n")
    return text[len(name) + 1 :].strip(" –—·•|") if name is not None and text.startswith(f"{name}:") else text


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
    plausible = (len(filled) / count) * (len(set(filled)) / len(filled)) * (_SHIFTED if _looks_shifted(fields) else 1.0)
    plausible *= 1 - _split(fields) / count
    return float(share**0.6 * plausible * complete * (0.3 + 0.7 * fields.found.alone) * (0.4 + 0.6 * fields.found.alike))


def _split(fields: Fields) -> int:
    """Count the blocks with the author and second of the block before: parts of one post."""
    same, before = 0, None
    for number in range(fields.paths.count):
        date = fields.paths.marks.dates.get(fields.dates.elements.get(number, -1))
        this = (fields.author(number), fields.dates.published[number]) if date is not None and date.second else None
        same += this is not None and this == before
        before = this
    return same


def _looks_shifted(fields: Fields) -> bool:
    """Return True if, in posts made of several siblings, texts stand before their dates: each date may be the next post's."""
    if not fields.found.how.endswith("runs"):
        return False
    dates, bodies = fields.dates.elements, fields.bodies
    before = sum((root := bodies[number].root) is not None and root < i for number, i in dates.items())
    return before > 0.5 * len(bodies)


def _raw(paths: BlockPaths, body: Body) -> str:
    """Return a body's text unchanged from the page: exact enough to compare bodies."""
    texts = paths.tree.texts
    start, end = body.texts
    parts = []
    for a, b in [*body.without, (end, end)]:
        parts += texts[start:a]
        start = max(start, b)
    return "".join(parts).strip()
