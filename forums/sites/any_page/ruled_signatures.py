"""Signatures without a class or a line of characters, which stand below a rule (`<hr>`)."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict

from .block_paths import BlockPaths
from .page_tree import Range

LONGEST_SIGNATURE = 600  # characters


def below_rules(paths: BlockPaths, roots: dict[int, int], authors: dict[int, int]) -> dict[int, Range]:
    """Return the texts below the last rule of bodies, where they are the same in all posts of an author; for authors with one
    post where it has as many rules as such bodies.
    """
    tree = paths.tree
    rules = [i for i, tag in enumerate(tree.tag) if tag == "hr"]
    below: dict[int, tuple[Range, int]] = {}
    by_author: dict[str, list[int]] = defaultdict(list)
    for number, root in roots.items() if rules else ():
        place, first = bisect_left(rules, tree.end[root]) - 1, bisect_left(rules, root)
        if place < first or number not in authors:
            continue
        start, end = tree.first_text[rules[place]], tree.last_text[root]
        if tree.first_text[root] < start < end and tree.chars[end] - tree.chars[start] <= LONGEST_SIGNATURE:
            below[number] = (start, end), place - first
            by_author[paths.string(authors[number])].append(number)
    same = {
        name
        for name, numbers in by_author.items()
        if len(numbers) > 1 and len({"".join(tree.texts[slice(*below[n][0])]) for n in numbers}) == 1
    }
    least = min((below[n][1] for name in same for n in by_author[name]), default=len(rules))
    return {
        n: texts
        for name, of in by_author.items()
        for n in of
        if (texts := below[n][0]) and _is_signed(name, of, same, below, least)
    }


def _is_signed(name: str, posts: list[int], same: set[str], below: dict[int, tuple[Range, int]], least: int) -> bool:
    return name in same or (len(posts) == 1 and below[posts[0]][1] >= least)
