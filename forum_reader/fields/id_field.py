"""Id and permalink of each block: an attribute that each block has with a different value. The first block may have none: an
opening post has the thread's id.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from forum_reader.readers.block_paths import BlockPaths

from .post_marks import DATE_DATA, suggests_date

_UUID = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/?$", re.IGNORECASE)
_HASH = re.compile(r"(?:^|[_\-/#=:])((?=[0-9a-f]*[a-f])(?=[a-f]*\d)[0-9a-f]{12,64})/?$", re.IGNORECASE)
_DIGITS = re.compile(r"(\d{1,18})(?=[^\d\n]*+(?:\n|\Z))")
_CODE = re.compile(r"(?:^|[_\-/#=:])([0-9a-zA-Z]{5,40})/?$")
_FORMS = (_UUID, _HASH, _DIGITS, _CODE)
_LEAST_OTHERS = 2  # blocks that have an id where the first has none
OPENING_HAS_NONE = 0.1  # off the score of ids that an opening post lacks
_OF_A_POST = re.compile(
    r"post|comment|msg|message|reply|answer|entry|article|(?:^|[^a-z])(?:p|c|pid|cid|id)(?:$|[^a-z])", re.IGNORECASE
)
_OF_OTHERS = re.compile(
    r"user|member|author|avatar|profile|uid|thread|topic|forum|page|quote|attach|image|sig|like|vote|menu|edit", re.IGNORECASE
)
_ATTRIBUTES = ("id", "name", "href", "data-id", "data-content", "about", "for", "value")
_DEEPEST = 400  # elements of a block that are searched
_OUTSIDE = 3  # elements around a block, and before it


def is_code(value: str) -> bool:
    """Return True if a value ends with a UUID or a hash, whose last digits are not an id."""
    return bool(_UUID.search(value) or _HASH.search(value))


def find_ids(paths: BlockPaths) -> tuple[list[str | None], list[str | None]]:
    """Return ids and permalinks by the block's number; all None where no attribute differs in each block."""
    values: dict[tuple[str, str], dict[int, tuple[str, str]]] = defaultdict(dict)
    for number in range(paths.count):
        for key, id_, value in _candidates(paths, number):
            values[key].setdefault(number, (id_, value))
    best: dict[int, tuple[str, str]] = {}
    best_score = 0.0
    for (where, prefix), found in values.items():
        others = len(found) == paths.count - 1 >= _LEAST_OTHERS and 0 not in found
        if len({id_ for id_, _ in found.values()}) < paths.count - others:
            continue
        score = _score(where, prefix, [id_ for id_, _ in found.values()]) - OPENING_HAS_NONE * others
        if score > best_score:
            best, best_score = found, score
    ids = [best[number][0] if number in best else None for number in range(paths.count)]
    return ids, [_link(paths, number, id_) for number, id_ in enumerate(ids)]


def _score(where: str, prefix: str, ids: list[str]) -> float:
    score = 1.0 + 0.5 * (where in ("id", "data-content")) + 0.3 * (where == "name") + 0.2 * ("data" in where)
    text = f"{where} {prefix}"
    score += 0.6 * bool(_OF_A_POST.search(text)) - 0.8 * bool(_OF_OTHERS.search(text))
    if all(id_.isdigit() for id_ in ids):
        numbers = [int(id_) for id_ in ids]
        counted = numbers == list(range(numbers[0], numbers[0] + len(numbers))) and numbers[0] < 100_000
        score -= 0.7 * counted  # places, not ids
    else:
        score -= 0.2
    return max(score, 0.01)


def _candidates(paths: BlockPaths, number: int) -> Iterator[tuple[tuple[str, str], str, str]]:
    tree, block = paths.tree, paths.blocks[number]
    skip = [range(*inner) for inner in block.inner_elements[:50]]
    elements = list(range(block.start, min(block.end, block.start + _DEEPEST)))
    up = tree.parent[block.start]
    for _ in range(_OUTSIDE):  # <a name> before a block; an element that only has it
        if up > 0 and tree.end[up] == block.end:
            elements.append(up)
            up = tree.parent[up]
    if block.start > 0 and tree.end[block.start - 1] == block.start:
        elements.append(block.start - 1)
    for i in elements:
        attributes = tree.attributes[i]
        if not attributes or any(i in inner for inner in skip):
            continue
        for name, value in attributes.items():
            own = i == block.start and name.startswith("data-") and name not in DATE_DATA and not suggests_date(name)
            if not (own or name in _ATTRIBUTES or name.endswith("id")) or len(value) > 300:
                continue
            if match := next((found for form in _FORMS if (found := form.search(value))), None):
                prefix = value[: match.start(1)] if name != "href" else re.sub(r"\d+", "", value[: match.start(1)])[-40:]
                yield (name, prefix), match[1], value


def _link(paths: BlockPaths, number: int, id_: str | None) -> str | None:
    if id_ is None or len(id_) < 2:
        return None
    tree, block = paths.tree, paths.blocks[number]
    for i in range(block.start, min(block.end, block.start + _DEEPEST)):
        href = tree.attributes[i].get("href")
        if (
            href
            and id_ in href
            and not _OF_OTHERS.search(href.rpartition("/")[2].partition("=")[0])
            and not href.startswith("javascript")
        ):
            return href
    return None
