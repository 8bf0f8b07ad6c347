"""Texts that stand twice in a post: a preview above the whole text, or a copy that a script shows or quotes."""

from __future__ import annotations

from forum_reader.page.page_tree import PageTree, Range

_LEAST_TEXT = 25  # characters of a text that identifies a place
_LEAST_COPY = 60  # characters of a copy
_COPIED = 0.85  # of the characters up to the second place
_OF_BODY = 0.6  # of the characters of a body, both copies together
_HEADING = 80  # characters around a copy that belong to it: `Quote from ida on 3 March`


def first_copy(tree: PageTree, texts: list[int], root: int) -> Range | None:
    """Return the texts of the first copy in a body whose words stand twice, or of the copy in one piece; None without a copy.
    `texts` are the body's own.
    """
    seen: dict[str, int] = {}
    begun: dict[str, int] = {}
    for at, k in enumerate(texts):
        text = tree.texts[k].strip()
        if len(text) < _LEAST_TEXT:
            continue
        if (first := seen.setdefault(text, at)) != at:
            return _copy(tree, texts, first, at, root)
        if (first := begun.setdefault(text[:_LEAST_TEXT], at)) == at or len(text) < _LEAST_COPY:
            continue
        above = tree.chars[k] - tree.chars[texts[first]]
        if _COPIED * len(text) <= above <= len(text) / _COPIED:
            before = "".join(tree.texts[j] for j in texts[first:at])
            if "".join(before.split()) == "".join(text.split()):
                return k, k + 1  # the source of the text above
    return None


def _copy(tree: PageTree, texts: list[int], first: int, again: int, root: int) -> Range | None:
    pairs = zip(texts[first:again], texts[again:], strict=False)
    copied = sum(len(tree.texts[a]) for a, b in pairs if tree.texts[a].strip() == tree.texts[b].strip())
    between = sum(len(tree.texts[k]) for k in texts[first:again])
    whole = sum(len(tree.texts[k]) for k in texts)
    if copied < _LEAST_COPY or copied < _COPIED * between or 2 * copied < _OF_BODY * whole:
        return None
    return _with_heading(tree, texts[first], texts[again], root)


def _with_heading(tree: PageTree, start: int, end: int, root: int) -> Range:
    """Extend the copy by the elements that hold it and little else."""
    i = tree.owner[start]
    begin = start
    while i > root and tree.last_text[i] <= end and tree.size(i) <= tree.chars[end] - tree.chars[start] + _HEADING:
        begin = min(begin, tree.first_text[i])
        i = tree.parent[i]
    return begin, end
