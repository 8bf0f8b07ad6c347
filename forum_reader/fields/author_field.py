"""Author of each block: found by links to profiles, by class names, or as the short text that varies as names do."""

from __future__ import annotations

import re
from collections import Counter

from forum_reader.readers.block_paths import BlockPaths, Place

from . import post_marks
from .author_names import (
    AROUND,
    BEFORE_NAME,
    BY,
    ENDS_BY,
    LABELLED,
    LONGEST,
    RANK,
    REPLY_TITLE,
    SPEECH_VERB,
    VERB,
)

_LIKELY = 0.3
_NEARLY_SURE = 0.45
_MOST_PLACES = 12
_HANDLE = re.compile(r"(?<=\S)\s+@[\w.-]+(?:@[\w.-]+)?$")
_BUTTON = re.compile(r"\[(?!delet|remov)[^\[\]]*\]|@ .*", re.IGNORECASE)  # or the answered author
_REPLY = re.compile(r"in-?repl|reply-?(?:to|author|name|user)|replied|parent-?author", re.IGNORECASE)
_NOBODY = re.compile(
    r"anon(?:ymous|yme?|imo|ym)?|guest|gast|invité|invitado|ospite|гость|аноним|nobody|匿名(?:用户|さん)?|"
    r"名無し(?:さん)?|익명",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"\s#\s?\d+$|^[^\W\d_][^:：\n]{0,24}[:：][\d.,\s]+$")
_STANDING_OUT = frozenset({"b", "strong", "h2", "h3", "h4", "h5", "h6", "a", "dt", "th"})


def find_authors(paths: BlockPaths) -> dict[int, int]:
    """Return the element of each block's author, by the block's number."""
    least = 0.15 if paths.count > 6 else 0.3
    scored = [(_score(paths, place), place) for place in paths.places[1:] if paths.presence(place) >= least]
    scored = [one for one in scored if one[0] > _LIKELY]
    scored.sort(key=lambda one: -one[0])
    found: dict[int, int] = {}
    for score, place in scored[:_MOST_PLACES]:
        if found and score < _NEARLY_SURE:
            break
        others = [paths.string(i) for number, i in place.first.items() if number in found]
        if len(others) > 2 and len(set(others)) == 1:  # a rank
            continue
        for number, i in place.first.items():
            if number not in found and _may_be_name(paths, i):
                found[number] = i
        if len(found) == paths.count:
            break
    if len(found) < paths.count:
        signs = Counter(paths.tree.sign[i] for i in found.values())
        for number in range(paths.count):
            if number not in found and (other := _in_other_markup(paths, number, signs)) is not None:
                found[number] = other
    return found


_BADGE = re.compile(
    r"[(\[+×★☆✓•\s]{0,3}(?:(?:lvl?|等级|等級)[.:\s]{0,2}|(?:level|rank|karma|stufe|niveau|nivel)[.:\s]{1,2})?\d[\d.,]{0,9}[kKmM]?"
    r"(?:\s?(?:posts?|points?|pts|rep|messages|beiträge|punkte|帖|分))?[)\]+\s]{0,3}",
    re.IGNORECASE,
)
_BADGE_LENGTH = 16  # characters
_FIGURE = re.compile(r"[^\W\d_]{2,12}\s?[:：]\s?\d[\d.,]{0,9}")


def name_of(paths: BlockPaths, i: int) -> str:
    """Return the name in an author's element, without `by` and `wrote:`."""
    named = _called(paths, i)
    badges = badges_of(paths, named)
    text = _without(paths, named, badges) if badges else paths.label(named)
    if BEFORE_NAME.search(text):  # the name is in the next element
        text = paths.string(i)
    return _HANDLE.sub("", SPEECH_VERB.sub("", BY.sub("", text)).strip(AROUND)) or text


def badges_of(paths: BlockPaths, i: int) -> list[int]:
    """Return the elements within an author's element that are a number next to the name, as of a badge or a level."""
    tree, found, end = paths.tree, [], i
    for j in range(i + 1, tree.end[i]):
        if j >= end and 0 < tree.size(j) <= _BADGE_LENGTH and _BADGE.fullmatch(paths.string(j)):
            found.append(j)
            end = tree.end[j]
    return found if found and any(map(str.isalpha, _without(paths, i, found))) else []


def _without(paths: BlockPaths, i: int, parts: list[int]) -> str:
    tree = paths.tree
    return " ".join(
        tree.joined(tree.first_text[i], tree.last_text[i], [(tree.first_text[j], tree.last_text[j]) for j in parts]).split()
    )


def _called(paths: BlockPaths, i: int) -> int:
    """Return the first inner element whose class marks a name: `<a><span class=username>ida</span> 133 posts</a>`; else `i`."""
    tree = paths.tree
    first = (j for j in range(i + 1, min(tree.end[i], i + 6)) if tree.first_text[j] == tree.first_text[i])
    return next((j for j in first if 0 < tree.size(j) < tree.size(i) and post_marks.suggests_author(paths.names(j))), i)


def profile_of(paths: BlockPaths, i: int) -> str | None:
    """Return the address of the author's profile, where the element is a link or holds a link."""
    tree = paths.tree
    for one in (i, tree.parent[i], *range(i + 1, min(tree.end[i], i + 6))):
        href: str | None = tree.attributes[one].get("href")
        if href and post_marks.is_profile_link(href):
            return href
    own: str | None = tree.attributes[i].get("href")
    return own


def _may_be_name(paths: BlockPaths, i: int) -> bool:
    if not 0 < paths.tree.size(i) <= LONGEST or i in paths.marks.dates or not paths.has_letters(i):
        return False
    text = paths.string(i)
    return not (_BUTTON.fullmatch(text) or BEFORE_NAME.search(text) or _BADGE.fullmatch(text) or _FIGURE.fullmatch(text))


def _score(paths: BlockPaths, place: Place) -> float:
    tree = paths.tree
    elements = [i for i in place.first.values() if 0 < tree.size(i) <= LONGEST]
    if len(elements) < 0.6 * len(place.first):
        return 0.0
    sample = elements[:6]
    if sum(map(paths.has_letters, sample)) < 0.8 * len(sample):
        return 0.0
    signs = zip(*(_signs(paths, i) for i in sample), strict=True)
    linked, hinted, above, labelled, marked = (float(sum(one)) / len(sample) for one in signs)
    known = linked or hinted or above or marked or labelled
    few = paths.presence(place) < 0.8 and len(place.first) < max(2, paths.count - 1)  # the opening post is often made otherwise
    if not known and few and not all(_heads_date(paths, i) for i in sample):
        return 0.0
    strings = [paths.label(i).strip(AROUND) for i in elements]
    if _are_no_names(strings):
        return 0.0
    distinct = len({text.lower() for text in strings})
    if distinct == 1 and _NOBODY.fullmatch(strings[0]):
        return 0.5 * paths.presence(place)
    if not known:
        return _name_score(paths, place, elements, strings)
    if distinct == 1 and len(strings) > 3 and not linked == hinted == 1:
        return 0.0  # a button, a title
    dated = sum(i in paths.marks.dates for i in sample) / len(sample)
    score = 0.45 * max(linked, labelled) + 0.25 * hinted + 0.12 * above + (0.2 if marked else 0.0) + 0.25 * paths.presence(place)
    score += 0.1 * min(1.0, distinct / len(strings) * 2) - 0.8 * dated
    score -= 0.2 * (sum(map(len, strings)) > 30 * len(strings)) + 0.2 * any(text.count(" ") > 4 for text in strings)
    score -= 0.5 * any(_REPLY.search(paths.names(i) + paths.names(tree.parent[i])) for i in sample)
    score -= 0.6 * sum(_is_mention(paths, i) for i in sample) / len(sample)
    return score - 0.02 * min(5, place.count / len(place.first) - 1)


def _signs(paths: BlockPaths, i: int) -> tuple[bool, bool, bool, bool, bool]:
    """Return signs of an author: a link or `by`, the class, the class around, a label, a property."""
    found: tuple[bool, bool, bool, bool, bool] | None = paths.marks.known.get((_signs, i))
    if found is None:
        tree = paths.tree
        role = tree.attributes[i].get("itemprop", "")
        found = paths.marks.known[_signs, i] = (
            _is_linked(paths, i) or _stands_after_by(paths, i),
            post_marks.suggests_author(paths.names(i)) or tree.tag[i] == "cite",
            post_marks.suggests_author(paths.names(tree.parent[i])),
            _is_labelled(paths, i),
            "author" in role or role == "name",
        )
    return found


def _is_labelled(paths: BlockPaths, i: int) -> bool:
    """Return True if an element is `Author: ida` and nothing more."""
    is_plain = not any(j in paths.marks.dates for j in range(i + 1, paths.tree.end[i]))
    return is_plain and LABELLED.match(paths.string(i)) is not None


def _are_no_names(strings: list[str]) -> bool:
    """Return True if the strings cannot be names: actions (`answered`), post numbers (`message #7`, `Posts: 133`), repeated
    titles (`Re: Lamps`), or ranks.
    """
    if all(map(RANK.fullmatch, strings)):
        return True
    titles = sum(bool(REPLY_TITLE.match(text)) for text in strings)
    return 2 * titles >= len(strings) or all(VERB.fullmatch(text) or _NUMBERED.search(text) for text in strings)


def _is_mention(paths: BlockPaths, i: int) -> bool:
    """Return True if a name stands within a sentence."""
    tree = paths.tree
    if tree.texts[tree.first_text[i]].lstrip().startswith("@"):
        return True
    up = tree.parent[i]
    own = sum(len(tree.texts[k].strip()) for k in range(tree.first_text[up], tree.last_text[up]) if tree.owner[k] == up)
    return own > LONGEST


def _name_score(paths: BlockPaths, place: Place, elements: list[int], strings: list[str]) -> float:
    """Score a place that neither a link nor a class marks as an author: names are short, begin a block, repeat, are quoted."""
    if max(map(len, strings)) > 40 or any(i in paths.marks.dates for i in elements):
        return 0.0
    distinct = len(set(strings))
    if (
        distinct < 2
        or distinct < min(3.0, 0.2 * len(strings))
        or sum(text[:1].isdigit() for text in strings) > 0.2 * len(strings)
    ):
        return 0.0
    words = sum(text.count(" ") for text in strings) / len(strings)
    depth = 0.0
    for number, i in place.first.items():
        block = paths.blocks[number]
        depth += (i - block.start) / max(1, block.end - block.start)
    headed = sum(_heads_date(paths, i) or _stands_before_date(paths, i) for i in elements[:6]) / len(elements[:6])
    score = 0.2 + 0.2 * headed + 0.1 * (distinct < len(strings)) + 0.1 * paths.presence(place) - 0.1 * min(words, 3)
    score -= 0.2 * depth / len(place.first)
    score += 0.12 * (paths.tree.tag[elements[0]] in _STANDING_OUT) + 0.15 * all(SPEECH_VERB.search(text) for text in strings)
    score -= 0.15 * any(post_marks.suggests_meta(paths.names(i)) for i in elements[:4])
    return score


def _heads_date(paths: BlockPaths, i: int) -> bool:
    """Return True if an element is a name and a date: `<p>ida · <span>3 March</span></p>`."""
    tree = paths.tree
    inner = next((j for j in range(i + 1, min(tree.end[i], i + 6)) if j in paths.marks.dates), None)
    return inner is not None and tree.owner[tree.first_text[i]] == i and tree.size(i) <= LONGEST


def _stands_before_date(paths: BlockPaths, i: int) -> bool:
    """Return True if a date is the next text, after at most a short word: `<b>ida</b> on <span>3 March</span>`."""
    tree = paths.tree
    after = tree.last_text[i]
    return any(
        tree.owner[k] in paths.marks.dates for k in range(after, min(after + 2, len(tree.texts))) if len(tree.texts[k]) <= LONGEST
    )


def _is_linked(paths: BlockPaths, i: int) -> bool:
    tree = paths.tree
    href = tree.attributes[i].get("href")
    if href is None:
        up = tree.parent[i]
        if tree.tag[up] == "a" and tree.size(up) == tree.size(i):
            href = tree.attributes[up].get("href")
        else:
            inner = (j for j in range(i + 1, min(tree.end[i], i + 6)) if tree.tag[j] == "a" and tree.size(j) == tree.size(i))
            href = next((tree.attributes[j].get("href") for j in inner), None)
    return href is not None and post_marks.is_profile_link(href)


def _stands_after_by(paths: BlockPaths, i: int) -> bool:
    """Return True if the text right before an element is `by`, `Posted by`, `作者：` or `3 March 2019 by`."""
    tree = paths.tree
    before = tree.first_text[i] - 1
    if before < 0 or len(tree.texts[before]) > LONGEST:
        return False
    text = tree.texts[before].strip()
    return bool(BEFORE_NAME.match(text) or (ENDS_BY.search(text) and tree.owner[before] in paths.marks.dates))


def _in_other_markup(paths: BlockPaths, number: int, signs: Counter[int]) -> int | None:
    """Find the author of a block whose markup differs from the others'."""
    best, best_score = None, 0.0
    for i in paths.authors_of[number]:
        if not _may_be_name(paths, i):
            continue
        score = 0.5 + 0.5 * (paths.tree.sign[i] in signs) + 0.4 * _is_linked(paths, i)
        score -= 0.1 * (paths.label(i).count(" ") > 2)
        if score > best_score:
            best, best_score = i, score
    return _same_kind(paths, number, signs) if best is None else best


def _same_kind(paths: BlockPaths, number: int, signs: Counter[int]) -> int | None:
    """Return the first element of a block that has the class of most authors."""
    sign = max(signs, key=lambda one: signs[one], default=None)
    attributes = paths.tree.attributes
    alike = (i for i in paths.own[number] if paths.tree.sign[i] == sign and "class" in attributes[i])
    return next((i for i in alike if _may_be_name(paths, i)), None)
