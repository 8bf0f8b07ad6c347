"""The post of a thread without answers. Nothing repeats, so it is the text that its class marks, or the text with most of the
page's words, next to a name and a date, on a page that mentions replies.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from forum_reader.dates.dates_in_text import Spotted
from forum_reader.dates.post_calendar import Calendar
from forum_reader.fields import post_marks
from forum_reader.fields.author_names import above_details
from forum_reader.fields.post_marks import Marks
from forum_reader.page.page_tree import PageTree, typed_fields
from forum_reader.page.records import SeenPost

from .repeated_blocks import Block, BlockSet
from .structure import posts_of, read_fields

_LEVELS = 6  # of elements around the text, that hold its author and date
_SHARE = 0.4  # of the page's words outside of links, that are the post's
_SHARE_NAMED = 0.2  # where its class marks a text
_SHARE_SIGNED = 0.05  # where a date is next to it, too
_LEAST = 20  # characters
_MOST_OF = 0.7  # of the words of an element around it
_A_DAY = 3  # precision of a date
_LEAST_WRITTEN = 0.3  # of a post, outside of links
_MOST_DATES = 3  # in the text of a post
_MOST_AROUND_DATES = 6  # of the post, of its author, of an edit
_LONGEST_CUE = 60
_MOST_AROUND = 600  # characters about the author, and buttons
_TEXT_PROPERTIES = frozenset({"text", "articleBody"})
_IN_TEXT = frozenset({"p", "b", "i", "em", "strong", "a", "span", "font", "u", "blockquote", "ul", "ol", "li", "pre", "code"})
_REPLIES = re.compile(
    r"\brepl(?:y|ies|ied)\b|\banswers?\b|\brespon(?:d|ses?)\b|antwort|répon|respuesta|respond|risp(?:ondi|ost)|resposta|"
    r"reageer|reactie|\bsvar|odpowied|odpověd|ответ|відпов|yanıt|cevap|回复|回覆|回應|回帖|跟帖|返信|レス|답글|댓글|"
    r"trả lời|balas",
    re.IGNORECASE,
)
_OF_A_THREAD = re.compile(
    r"thread|topic|forum|comment|reply|quote|discuss|message|question|answer|beitrag|thema|(?:^|[^a-z])(?:post|msg|ticket|issue|bug)",
    re.IGNORECASE,
)
_COPYRIGHT = re.compile(r"©|\(c\)|copyright|powered by", re.IGNORECASE)
_MOST_LINKS = 2  # of an author: a picture and a name
_LEAST_CUES = 3  # elements whose class, id or address mentions posts
_ADDRESS_OF_A_THREAD = re.compile(
    r"thread|topic|discuss|question|beitrag|thema|(?:^|[^a-z])(?:ticket|issue|bug)s?(?:[^a-z]|$)|(?:^|/)(?:t|d|p|posts?|messages?)/|[?&](?:t|tid)=\d",
    re.IGNORECASE,
)
_HOST_OF_FORUMS = re.compile(r"forum|board|communit|discuss|talk|bbs", re.IGNORECASE)


def lone_post(tree: PageTree, marks: Marks, calendar: Calendar, url: str = "", *, rows: Sequence[int] = ()) -> SeenPost | None:
    """Return the only post of the page at `url`; None where it does not look like a thread. `rows`: elements that list other
    threads, which cannot stand in a post.
    """
    dates = [i for i, date in marks.dates.items() if date.precision >= _A_DAY and not _is_in_prose(tree, i, date)]
    signed = _signed_body(tree, marks, dates)
    body = signed if signed is not None else _body(tree, marks, dates)
    if signed is not None and _holds(tree, dates, signed):
        signed = None  # its head may be in it
    if body is None or _lists(tree, body, rows) or tree.written_in(body) < _LEAST_WRITTEN * tree.size(body):
        return None
    if sum(body <= i < tree.end[body] for i in dates) > _MOST_DATES or _is_form(tree, body):  # of rows
        return None
    if not dates or not mentions_replies(tree, url):
        return None
    around = body
    most = tree.written_in(body) + _MOST_AROUND
    words = max(1, tree.chars[-1] - tree.link_chars[-1])
    likely = None
    for _ in range(_LEVELS):
        if not _holds(tree, dates, around):
            around = tree.parent[around]
        if around <= 0 or tree.written_in(around) > most or _lists(tree, around, rows):
            break
        post, is_sure = _read(tree, marks, calendar, around, words)
        if is_sure:
            return post
        likely = likely or post
        around = tree.parent[around]
    return likely


def _read(tree: PageTree, marks: Marks, calendar: Calendar, around: int, words: int) -> tuple[SeenPost | None, bool]:
    """Read the post in an element with a text, an author and a date; also return True if the author is marked as such."""
    block = Block(around, tree.end[around], (tree.first_text[around], tree.last_text[around]))
    fields = read_fields(tree, marks, BlockSet([block], 1.0, "alone", 1.0, 1.0), calendar, words)
    if not fields.dates.elements:
        return None, False
    author = fields.authors.get(0, -1)
    is_sure = any(author <= i < tree.end[author] for i in marks.authors) if author >= 0 else False
    if not is_sure and (name := above_details(fields.paths)) is not None:
        fields.authors.pop(0, None)
        fields.names[0] = name
    name = fields.author(0)
    if name is None or _is_heading(tree, name) or _leads_elsewhere(tree, fields.authors.get(0)):
        return None, False
    if not is_sure and _is_label(tree, fields.authors.get(0, around)):
        return None, False
    (post,) = posts_of(fields, calendar)
    return (post, is_sure) if len(post.text) >= _LEAST else (None, False)


def _is_form(tree: PageTree, body: int) -> bool:
    """Return True if input fields stand in a text before most of its words; an answer's field is below the post."""
    first = next((i for i in typed_fields(tree) if body < i < tree.end[body]), None)
    return first is not None and 2 * tree.written(tree.first_text[body], tree.first_text[first]) < tree.written_in(body)


def _is_in_prose(tree: PageTree, i: int, date: Spotted) -> bool:
    """Return True if a date is a word of a sentence (`Order one today!`), or the year of a copyright."""
    text = tree.string(i)
    return bool(_COPYRIGHT.search(text)) or (date.back is not None and date.precision == _A_DAY and text.count(" ") > 1)


def _ancestors(tree: PageTree, i: int) -> Iterable[int]:
    while (i := tree.parent[i]) > 0:
        yield i


def _is_label(tree: PageTree, author: int) -> bool:
    """Return True if a candidate author stands in a form with input fields."""
    fields = typed_fields(tree)
    forms = (i for i in _ancestors(tree, author) if tree.tag[i] == "form")
    return any(i < field < tree.end[i] for i in forms for field in fields)


def _is_heading(tree: PageTree, name: str) -> bool:
    """Return True if a name is the page's heading: a profile page, or a link to a profile."""
    return any(tag == "h1" and tree.size(i) == len(name) and tree.string(i) == name for i, tag in enumerate(tree.tag))


def _leads_elsewhere(tree: PageTree, author: int | None) -> bool:
    """Return True if an author is a link that neither its address nor its class marks, several links, or a heading of columns."""
    if author is None:
        return False
    if sum(tree.tag[i] == "a" for i in range(author, tree.end[author])) > _MOST_LINKS:
        return True
    href = tree.attributes[author].get("href", "#") if tree.tag[author] == "a" else "#"
    if not href.startswith("#") and "usr" not in href:
        classes = tree.attributes[author].get("class", "")
        return not post_marks.is_profile_link(href) and not post_marks.suggests_author(classes)
    within = range(author, tree.end[author])
    profile = any(post_marks.is_profile_link(tree.attributes[i].get("href", "")) for i in within)
    return not profile and any(tree.tag[i] == "th" for i in within)


def mentions_replies(tree: PageTree, url: str) -> bool:
    """Return True if a button or a line mentions replies, or class names and addresses mention posts."""
    if any(len(text) <= _LONGEST_CUE and _REPLIES.search(text) for text in tree.texts):
        return True
    address = urlsplit(url)
    cues = 2 * bool(_ADDRESS_OF_A_THREAD.search(f"{address.path}?{address.query}"))
    cues += bool(_HOST_OF_FORUMS.search(address.hostname or ""))
    for attributes in tree.attributes:
        if attributes:
            named = (attributes.get(name) for name in ("class", "id", "href"))
            cues += any(value and _OF_A_THREAD.search(value) for value in named)
            if cues >= _LEAST_CUES:
                return True
    return False


def _named(tree: PageTree) -> list[int]:
    """Return the elements whose class or property marks a text."""
    return [
        i
        for i, attributes in enumerate(tree.attributes)
        if attributes and (post_marks.suggests_body(tree.names(i)) or attributes.get("itemprop") in _TEXT_PROPERTIES)
    ]


def _signed_body(tree: PageTree, marks: Marks, dates: Sequence[int]) -> int | None:
    """Return, of elements whose class marks a text, the one with the most words and a date next to it. The columns and the frame
    of a page have such classes, too; they contain the post with its author and date, or are further from these than its text.
    """
    words = tree.chars[-1] - tree.link_chars[-1]
    fields = typed_fields(tree)
    near: dict[int, int] = {}
    for i in _named(tree):
        if tree.written_in(i) < max(_LEAST, _SHARE_SIGNED * words) or _holds(tree, fields, i):
            continue
        if _holds(tree, marks.authors, i) and _holds(tree, dates, i):
            continue
        around = _dated(tree, dates, i)
        if around is not None and sum(around <= date < tree.end[around] for date in dates) <= _MOST_AROUND_DATES:
            near[i] = around
    left = [i for i in near if not any(near[i] < near[j] < tree.end[near[i]] for j in near)]
    best = max(left, key=lambda i: tree.written_in(i), default=None)
    return None if best is None else _inner(tree, best, left)


def _dated(tree: PageTree, dates: Sequence[int], i: int) -> int | None:
    """Return the nearest ancestor of a text that holds a date outside of it."""
    around = i
    for _ in range(_LEVELS):
        around = tree.parent[around]
        if around <= 0:
            return None
        if any(around <= date < tree.end[around] and not i <= date < tree.end[i] for date in dates):
            return around
    return None


def _inner(tree: PageTree, best: int, named: Sequence[int]) -> int:
    """Return the innermost of nested elements that hold about the same text."""
    for i in named:
        if best < i < tree.end[best] and tree.written_in(i) >= _MOST_OF * tree.written_in(best):
            best = i
    return best


def _body(tree: PageTree, marks: Marks, dates: Sequence[int]) -> int | None:
    """Return the element with the most words: of those whose class or property marks a text and that are not the frame of the
    page, else of all.
    """
    words = tree.chars[-1] - tree.link_chars[-1]
    fields = typed_fields(tree)
    frame = (fields, marks.authors, dates)
    named = [i for i in _named(tree) if not all(_holds(tree, held, i) for held in frame)]
    best = max(named, key=lambda i: tree.written_in(i), default=None)
    if best is not None and tree.written_in(best) >= max(_LEAST, _SHARE_NAMED * words):
        return _inner(tree, best, named)
    held: Counter[int] = Counter()
    for k, text in enumerate(tree.texts):
        i = tree.owner[k]
        while tree.tag[i] in _IN_TEXT and tree.parent[i] >= 0:
            i = tree.parent[i]
        linked = tree.link_chars[k + 1] > tree.link_chars[k]  # a list of other threads
        held[i] += 0 if linked else len(text)
    best, most = max(held.items(), key=lambda one: one[1], default=(None, 0))
    return best if most >= max(_LEAST, _SHARE * words) else None


def _lists(tree: PageTree, i: int, rows: Sequence[int]) -> bool:
    return sum(i <= row < tree.end[i] for row in rows) > 1


def _holds(tree: PageTree, elements: Iterable[int], around: int) -> bool:
    return any(around <= i < tree.end[around] for i in elements)
