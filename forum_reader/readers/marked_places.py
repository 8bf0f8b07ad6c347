"""Posts marked by microdata of schema.org, of which each has its text, its author and its date in separate elements; else posts
by the structure that they repeat.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from forum_reader.dates.dates_in_text import machine_date
from forum_reader.dates.post_calendar import Calendar
from forum_reader.fields.date_field import Dates
from forum_reader.fields.post_marks import Marks
from forum_reader.fields.text_field import Body
from forum_reader.page.page_tree import PageTree

from .block_paths import BlockPaths
from .repeated_blocks import BlockSet, blocks_of
from .schema_org import ANSWERS, OPENING
from .structure import Fields, PostPattern, infer_posts, posts_of

_LEAST = 2  # posts
_MOST_LEFT = 0.5  # of the marked text: words around posts
_FIELDS = ("text", "author", "date")
_TEXTS = frozenset({"text", "articleBody", "commentText"})
_DATES = frozenset({"datePublished", "dateCreated", "commentTime"})
_AUTHORS = frozenset({"author", "creator"})


def inferred(tree: PageTree, marks: Marks, calendar: Calendar) -> PostPattern | None:
    """Return the posts of a page by its marks, else by its structure; None where neither shows any."""
    learned = infer_posts(tree, calendar, marks)
    return _marked_posts(tree, marks, calendar, learned) or learned


def _marked_posts(tree: PageTree, marks: Marks, calendar: Calendar, learned: PostPattern | None) -> PostPattern | None:
    """Return the posts that are fully marked, with text, author and date in separate elements; None where some are not, or where
    the structure shows more.
    """
    places = _places(tree)
    if len(places) < _LEAST or not all(name in one and tree.size(one["text"]) for one in places for name in _FIELDS):
        return None
    fields = _fields(tree, marks, calendar, places)
    posts = posts_of(fields, calendar)
    marked = _texts(fields)
    others = {tree.texts[number] for number in _texts(learned.fields) - marked} if learned else set()  # forms below posts repeat
    if any(post.published is None for post in posts) or _size(others) > _MOST_LEFT * _size(tree.texts[n] for n in marked):
        return None
    return PostPattern(posts, 1.0, fields)


def _places(tree: PageTree) -> list[dict[str, int]]:
    """Return the elements of each post marked by microdata: `post`, and `text`, `author` and `date` where they are marked."""
    posts: dict[int, dict[str, int]] = {}
    kinds: dict[int, str] = {}
    around: list[int] = []  # the scopes around an element
    for i, own in enumerate(tree.attributes):
        if "itemprop" not in own and "itemscope" not in own:
            continue
        while around and tree.end[around[-1]] <= i:
            around.pop()
        _add_place(tree, i, around, posts)
        if "itemscope" in own:
            kinds[i] = own.get("itemtype", "").rsplit("/", 1)[-1].lower()
            is_again = kinds[i] in OPENING and any(kinds[one] == kinds[i] for one in around)
            if kinds[i] in OPENING | ANSWERS and not is_again:
                posts[i] = {"post": i}
            around.append(i)
    return list(posts.values())


def _add_place(tree: PageTree, i: int, around: list[int], posts: dict[int, dict[str, int]]) -> None:
    """Add an element with properties to the post around it; a person's name is its post's author. `around`: the scopes."""
    own, scope = tree.attributes[i], around[-1] if around else -1
    role = tree.attributes[scope].get("itemprop", "") if around else ""
    names = set() if "itemscope" in own else set(own.get("itemprop", "").split())
    if scope in posts:
        post = posts[scope]
        if names & _TEXTS and tree.size(i) > (tree.size(post["text"]) if "text" in post else 0):
            post["text"] = i
        elif names & _DATES:
            post.setdefault("date", i)
        elif names & _AUTHORS:
            post.setdefault("author", i)
    elif role in _AUTHORS and "name" in names and len(around) > 1 and around[-2] in posts:
        posts[around[-2]].setdefault("author", i)


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
    found = BlockSet(blocks, 1.0, 1.0, max(signs.values()) / len(places), has_lead=is_lead)
    values = [tree.attributes[one["date"]] for one in places]
    shown = [
        value.get("content") or value.get("datetime") or tree.string(one["date"]) or value.get("title", "")
        for value, one in zip(values, places, strict=True)
    ]
    dates = Dates({number: one["date"] for number, one in enumerate(places)}, calendar.read(list(map(machine_date, shown))))
    authors = {number: one["author"] for number, one in enumerate(places)}
    bodies = [Body((tree.first_text[one["text"]], tree.last_text[one["text"]]), one["text"]) for one in places]
    return Fields(found, BlockPaths(tree, marks, blocks), authors, {}, dates, bodies, 1.0)
