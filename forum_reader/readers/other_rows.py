"""Boxes of other threads next to the posts: related ones, similar ones, the newest. Their rows have an author, a date and the
beginning of a text, as posts have, and a title that leads to another thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from forum_reader.dates.post_calendar import Calendar
from forum_reader.fields.author_names import BEFORE_ANSWERED, SPEECH_VERB
from forum_reader.fields.post_marks import Marks
from forum_reader.page.page_address import is_page_of
from forum_reader.page.page_tree import PageTree

from .list_rows import titles_of
from .repeated_blocks import without
from .row_links import form_of
from .structure import PostPattern, of_blocks

_SHORTEST = 8  # letters of a title


def teasers(learned: PostPattern, tree: PageTree, url: str, base: str, titles: Sequence[str | None]) -> set[int]:
    """Return the blocks with titles of other threads outside of their text; `titles` are the page's own.

    None where such blocks stand between others, as each post may link another thread; where most have a title and name several,
    or all have one and some name several: text of their authors. Among blocks with the same markup none where only one has a
    title, the opening post with the title of the thread, or some stand before the others and some behind.
    """
    own = [letters for title in titles if len(letters := _letters(title or "")) >= _SHORTEST]
    counts = [_other_threads(learned, tree, url, base, own, number) for number in range(len(learned.fields.bodies))]
    found = {number for number, count in enumerate(counts) if count}
    others = [number for number, count in enumerate(counts) if not count]
    if len(found) > len(others) and 2 * sum(count > 1 for count in counts) > len(found):
        return set()
    if not others:
        return found if max(counts) == 1 else set()
    signs = [tree.sign[block.start] for block in learned.fields.paths.blocks]
    are_alike = any(signs[number] in {signs[other] for other in others} for number in found)
    if are_alike and (len(found) == 1 or (0 in found and len(counts) - 1 in found)):
        return set()
    return found if others == list(range(others[0], others[-1] + 1)) else set()


def without_teasers(learned: PostPattern, tree: PageTree, marks: Marks, calendar: Calendar, out: set[int]) -> PostPattern:
    """Return the learned posts without these blocks, unless these are all blocks."""
    if not 0 < len(out) < learned.fields.paths.count:
        return learned
    return of_blocks(tree, marks, without(tree, learned.fields.found, out), calendar)


def _other_threads(learned: PostPattern, tree: PageTree, url: str, base: str, own: Sequence[str], number: int) -> int:
    """Count the threads that titles in a block lead to."""
    here = urlsplit(url)
    address, found = _letters(here.path), set()
    for _, row in titles_of(learned, tree, url, base, number, outside=True):
        if SPEECH_VERB.search(row.title) or BEFORE_ANSWERED.search(row.title.rpartition(" ")[0]):
            continue  # the author of a quote or of the answered post
        target, words = urlsplit(row.url), _letters(row.title)
        is_own = is_page_of(target, here) if target.path == here.path else target.path.startswith(f"{here.path.rstrip('/')}/")
        is_named = words in address or any(words in title or title in words for title in own)
        if len(words) >= _SHORTEST and not is_named and not is_own and _are_alike(row.url, url):
            found.add(row.url)
    return len(found)


def _are_alike(one: str, other: str) -> bool:
    """Return True if two addresses have the same form: those of threads of one forum."""
    if form_of(one) == form_of(other):
        return True
    parts, others = (urlsplit(url).path.strip("/").split("/") for url in (one, other))
    return len(parts) == len(others) > 1 and parts[0] == others[0]


def _letters(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())
