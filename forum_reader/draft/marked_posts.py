"""Posts whose elements a page marks for search engines (schema.org microdata), so that no structure has to be inferred."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from forum_reader.dates.post_calendar import Calendar
from forum_reader.dates.post_dates import machine_date
from forum_reader.fields.date_field import Dates
from forum_reader.fields.post_marks import Marks
from forum_reader.fields.text_field import Body
from forum_reader.page.page_tree import PageTree
from forum_reader.readers.block_fields import Fields, posts_of
from forum_reader.readers.block_paths import BlockPaths
from forum_reader.readers.repeated_blocks import BlockSet, blocks_of
from forum_reader.readers.schema_org import marked_places
from forum_reader.readers.structure import PostPattern

_LEAST = 2  # posts
_MOST_LEFT = 0.5  # of the marked text: words around posts
_FIELDS = ("text", "author", "date")


def marked_posts(tree: PageTree, marks: Marks, calendar: Calendar, learned: PostPattern | None) -> PostPattern | None:
    """Return the posts that are fully marked, with text, author and date in separate elements; None where some are not, or where
    the structure shows more.
    """
    places = marked_places(tree)
    if len(places) < _LEAST or not all(name in one and tree.size(one["text"]) for one in places for name in _FIELDS):
        return None
    fields = _fields(tree, marks, calendar, places)
    posts = posts_of(fields, calendar)
    marked = _texts(fields)
    others = {tree.texts[number] for number in _texts(learned.fields) - marked} if learned else set()  # forms below posts repeat
    if any(post.published is None for post in posts) or _size(others) > _MOST_LEFT * _size(tree.texts[n] for n in marked):
        return None
    return PostPattern(posts, 1.0, fields.found.how, fields)


def _texts(fields: Fields) -> set[int]:
    """Return the numbers of the texts that bodies hold."""
    bodies = fields.bodies
    whole = {number for body in bodies for number in range(*body.texts)}
    return whole - {number for body in bodies for start, end in body.without for number in range(start, end)}


def _size(texts: Iterable[str]) -> int:
    return sum(len(text.strip()) for text in texts)


def _fields(tree: PageTree, marks: Marks, calendar: Calendar, places: list[dict[str, int]]) -> Fields:
    """Return the fields of marked posts. The opening post is only its text where its element stands around the answers, or has
    other markup than they have.
    """
    signs = Counter(tree.sign[one["post"]] for one in places)
    first, second = places[0], places[1]
    is_lead = second["post"] < tree.end[first["post"]] or signs[tree.sign[first["post"]]] == 1
    starts = [one["text" if is_lead and one is first else "post"] for one in places]
    blocks = blocks_of(tree, [(start, tree.end[start]) for start in starts])
    found = BlockSet(blocks, 1.0, "marks with lead" if is_lead else "marks", 1.0, max(signs.values()) / len(places))
    values = [tree.attributes[one["date"]] for one in places]
    shown = [
        value.get("content") or value.get("datetime") or tree.string(one["date"]) or value.get("title", "")
        for value, one in zip(values, places, strict=True)
    ]
    dates = Dates(
        {number: one["date"] for number, one in enumerate(places)},
        calendar.read(list(map(machine_date, shown))),
        [None] * len(places),
    )
    authors = {number: one["author"] for number, one in enumerate(places)}
    bodies = [Body((tree.first_text[one["text"]], tree.last_text[one["text"]]), one["text"]) for one in places]
    return Fields(found, BlockPaths(tree, marks, blocks), authors, {}, dates, bodies, 1.0)
