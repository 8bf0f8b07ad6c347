"""Limits of HTML before it is parsed, estimated from its markup: characters, tags, and attributes of a tag. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

from forum_reader.errors import UnreadablePage

# Limits of reading on the reactor: some times the largest of 52 pages of real forums (425,000 characters, 5,122 tags).
MOST_CHARACTERS = 1 << 20
_MOST_TAGS = 20_000
_MOST_ATTRIBUTES = 4_000  # of a tag, an upper estimate: the parser needs their square, 20 ms
_UNSEEN = 2 * _MOST_ATTRIBUTES  # characters that hold no more attributes; 65,536 hold as many as take 1.5 s
_SHORT = 1_000  # characters without `>` that hold too few attributes to be counted
_MOST_VALUES = 1_000  # values with a `>` that are examined one by one; pages of forums have 30
_LONG_TAG = re.compile(rf"(<[A-Za-z](?=[^>]{{{_SHORT}}})[^ \t\n\f\r/>]*+)[^>]*")
_VALUE_GOES_ON = re.compile(r"=(?=\s*+(?:(\")[^\">]*+|'[^'>]*+)()>)")  # a `>` within a value does not end a tag
_ATTRIBUTE = re.compile(  # as in HTML5; white space before a quote is that of all versions of libxml2
    r"[^ \t\n\f\r/>][^ \t\n\f\r/>=]*+"
    r"(?:[ \t\n\f\r]*+=(?:[ \t\n\r]*+(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z))|[ \t\n\f\r]*+[^ \t\n\f\r>]*+))?"
)

_TAG = re.compile(  # a comment, or the beginning of a tag; of some elements what is in them is text
    r"<!--(?:-?>|.*?(?:--!?>|\Z))|<(?:(script|style|textarea|title)(?=[ \t\n\f\r/>])|[A-Za-z][^ \t\n\f\r/>]*+)",
    re.DOTALL | re.IGNORECASE,
)
_END_OF_TEXT = {name: re.compile(rf"</{name}", re.IGNORECASE) for name in ("script", "style", "textarea", "title")}
_NEXT_ATTRIBUTE = re.compile(rf"[ \t\n\f\r/]*+(?:(>)|{_ATTRIBUTE.pattern})")


def check_attributes(markup: str) -> None:
    """Refuse, before HTML is parsed, a tag of which the parser needs the square of its attributes. Raises UnreadablePage."""
    if len(markup) > _UNSEEN and most_attributes(markup) > _MOST_ATTRIBUTES and _attributes_of_a_tag(markup) > _MOST_ATTRIBUTES:
        raise UnreadablePage(f"has a tag with more than {_MOST_ATTRIBUTES:,} attributes: no page of a forum has")


def extraordinary(markup: str) -> str | None:
    """Return why HTML may take long to be parsed and searched; None for pages like those of forums. Takes time linear in its
    length.

    Counts may be too high, never too low, as they are taken from the markup, not from the parser: text of a script counts as
    tags.
    """
    if len(markup) <= _UNSEEN:
        return None
    if len(markup) > MOST_CHARACTERS:
        return f"has {len(markup):,} characters"
    if (tags := markup.count("<")) > _MOST_TAGS:
        return f"has {tags:,} tags"
    if most_attributes(markup) > _MOST_ATTRIBUTES:
        return f"may have a tag with more than {_MOST_ATTRIBUTES:,} attributes"
    return None


def _attributes_of_a_tag(markup: str) -> int:
    """Return the most attributes of a tag, as HTML5 splits the markup, or one more than _MOST_ATTRIBUTES."""
    place = most = 0
    while (tag := _TAG.search(markup, place)) is not None:
        place, count = tag.end(), 0
        if tag[0].startswith("<!"):
            continue
        while (found := _NEXT_ATTRIBUTE.match(markup, place)) is not None:
            place = found.end()
            if found[1] is not None:
                break
            if (count := count + 1) > _MOST_ATTRIBUTES:
                return count
        most = max(most, count)
        if tag[1] is not None:
            end = _END_OF_TEXT[tag[1].lower()].search(markup, place)
            place = end.start() if end else len(markup)
    return most


@lru_cache(maxsize=1)  # a large page is asked about before it is opened, and again before it is parsed
def most_attributes(markup: str) -> int:
    """Return an upper bound of the number of attributes of any tag: of those before its first value with a `>`, and behind it."""
    long = (_attributes(markup, tag.end(1), tag.end()) for tag in _LONG_TAG.finditer(markup))
    return max(_SHORT // 2, *long, 0) + _most_behind_values(markup)


def _attributes(markup: str, start: int, end: int) -> int:
    """Count the attributes that begin between two positions, the first of which is outside of a value."""
    return sum(1 for _ in _ATTRIBUTE.finditer(markup, start, end))


def _most_behind_values(markup: str) -> int:
    """Return the most attributes of a tag behind the first of its values with a `>`, including attributes behind further such
    values.
    """
    values = [(found.start(2), found[1] or "'") for found in _VALUE_GOES_ON.finditer(markup)]
    if len(values) > _MOST_VALUES:
        return len(values) * _SHORT
    closes = dict.fromkeys("\"'", len(markup))  # end of the current value
    behind: dict[int, int] = {}  # the end of a value
    behind_place: dict[int, int] = {}  # a `>` within a value
    for place, quote in sorted(values, reverse=True):
        found = markup.find(quote, place, closes[quote])
        closes[quote] = close = found if found >= 0 else closes[quote]
        if close not in behind:
            end = markup.find(">", close)
            end = len(markup) if end < 0 else end
            behind[close] = _attributes(markup, close + 1, end) + behind_place.get(end, 0)
        behind_place[place] = max(behind_place.get(place, 0), behind[close])
    return max(behind_place.values(), default=0)
