"""Names of authors found by their pictures, on pages without other marks of names: an avatar whose label is the name next to it,
or one that links to a profile and is followed by the name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import class_words
from .page_tree import PageTree

_OF_A_PERSON = re.compile(r"avatar|profile|user|member|gravatar|头像|頭像", re.IGNORECASE)
_CALLED = re.compile(
    r"(?:(?:avatar|profile (?:picture|photo|image)|photo|picture) (?:of|for|de|von|di) )?(.{1,40}?)"
    r"(?:['’]s)?(?: ?(?:avatar|profile (?:picture|photo|image)|photo|picture)|的?头像|的?頭像)?",
    re.IGNORECASE,
)
_BEFORE, _BEHIND = 4, 8  # texts around a picture, among which its name stands
_LONGEST = 30  # characters of a name
_NO_NAME = re.compile(r"^\W*$|\d{3}|[:：。!?]|^#?\d+$")


def pictured_authors(tree: PageTree) -> list[int]:
    """Return the elements of names, in the page's order."""
    return sorted({i for n in range(len(tree.tag)) if tree.tag[n] == "img" for i in _names(tree, n)})


def _names(tree: PageTree, picture: int) -> Iterator[int]:
    attributes = tree.attributes[picture]
    link = tree.parent[picture]
    profile = link >= 0 and tree.tag[link] == "a" and class_words.is_profile_link(tree.attributes[link].get("href", ""))
    described = " ".join(attributes.get(name, "") for name in ("class", "src", "alt", "title"))
    if not profile and not _OF_A_PERSON.search(described):
        return
    at = tree.first_text[picture]
    called = _CALLED.fullmatch(attributes.get("alt", "").strip())
    if called:
        for k in range(max(0, at - _BEFORE), min(len(tree.texts), at + _BEHIND)):
            if tree.texts[k].strip() == called[1]:
                yield tree.owner[k]
                return
    if profile and tree.first_text[link] == tree.last_text[link] and at < len(tree.texts):
        text, around = tree.texts[at].strip(), tree.parent[link]
        if len(text) <= _LONGEST and not _NO_NAME.search(text) and around >= 0 and around < tree.owner[at] < tree.end[around]:
            yield tree.owner[at]
