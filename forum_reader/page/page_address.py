"""Addresses of other pages of the same thread: compared by the parameters of threads, and those of pages."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import SplitResult

_PAGE = re.compile(
    r"p|pg|pn|pp|s|st|o|n|no|num|nr|go|start|offset|from|begin|skip|limit|before|after|cursor|sort|order|view|mode|"
    r".*(?:page|pagina|seite|sida|side|strana|stran|stranica|oldal|sayfa|sivu|offset|start)(?s:.*)|.*?[_-]?(?:sort|order|dir)",
    re.IGNORECASE,
)
"""Parameters of pages and of sort orders."""
_THING = re.compile(
    r"a?id|.*[_a-z](?:id|no)|t|tid|th|(?:show|view)?(?:topic|thread|forum|board)s?|tema|thema|sujet|q|questions?|d|discussion|m|msg|message|post|f|fid|"
    r"b|bid|c|cat|category|section|group|article|bug|issue|ticket",
    re.IGNORECASE,
)
"""Parameters of threads and boards."""
_BOARD = re.compile(r"f|fid|forum|board|b|bid|c|cat|category|section|group|.*(?:forum|board|cat|category)_?id", re.IGNORECASE)
"""Parameters of boards: a thread may be shown in several."""
_PATH_WORDS = frozenset(
    ("page", "pages", "pag", "pagina", "seite", "sida", "side", "strana", "stranica", "sayfa", "sivu", "index", "start", "offset")
)
_WORD = re.compile(r"[^\W\d_]{3,}")
_NUMBER = re.compile(r"\d+")
_MOST_PAGES = 1000  # numbers beyond are ids
_NEIGHBOUR = re.compile(
    r"(?:^|[&;])(?:prev_next|(?:action|goto|view|do|m)=(?:next|prev(?:ious)?)(?:newest|oldest|_?topic|_?thread)?)(?:[&;=]|$)",
    re.IGNORECASE,
)
"""Links to the thread before or behind: `goto=nextnewest`, `view=previous`, `prev_next=next`."""
_PAIR = re.compile(r"[&;]")


def host_of(address: SplitResult) -> str:
    """Return the host of an address, without `www.` and its scheme's default port."""
    return address.netloc.lower().removeprefix("www.").removesuffix(":443").removesuffix(":80")


def is_page_of(target: SplitResult, here: SplitResult) -> bool:
    """Return True if no part of the two addresses belongs to different threads or boards; hosts and the form of the paths are
    equal.
    """
    if _NEIGHBOUR.search(target.query):
        return False
    words = _words(target.path) - _words(here.path)
    is_below = target.path.startswith(here.path.rstrip("/") + "/") and words & _PATH_WORDS  # `comment-page-2` of this
    if (words - _PATH_WORDS and not is_below) or _other_number(target.path, here.path):
        return False
    theirs, ours = _parameters(target.query), _parameters(here.query)
    named = {key for key in theirs if _THING.fullmatch(key) and not _PAGE.fullmatch(key)}
    both = named & ours.keys()
    threads = {key for key in both if not _BOARD.fullmatch(key)}
    if any(_root(theirs[key]) != _root(ours[key]) for key in threads or both):
        return False
    of_thing = {key for key in ours if _THING.fullmatch(key) and not _PAGE.fullmatch(key)}
    return bool(both) or not of_thing or not named


def _other_number(target: str, here: str) -> bool:
    """Return True if a number other than a page's differs: in `/t/48217` and `/t/48218`, `/thread-7-1` and `/thread-9-1`."""
    theirs, ours = _NUMBER.findall(target), _NUMBER.findall(here)
    if len(theirs) == len(ours):
        differ = [(a, b) for a, b in zip(theirs, ours, strict=True) if a != b]
        return len(differ) > 1 or any(max(int(a[:9]), int(b[:9])) >= _MOST_PAGES for a, b in differ)
    shorter, longer = sorted((theirs, ours), key=len)
    return len(longer) - len(shorter) > 1 or longer[: len(shorter)] != shorter


@lru_cache(maxsize=1024)
def _words(path: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(path.rpartition(".")[0] or path))


def _parameters(query: str) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in _PAIR.split(query) if pair)
    return {key.lower(): value for key, _, value in pairs}


def _root(value: str) -> str:
    """Return a value without its page part: `7` of `7.20`."""
    return value.partition(".")[0]
