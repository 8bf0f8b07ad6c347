"""Comments within comments: rows in reading order, each with the id of the comment that it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from forum_reader.errors import UnreadablePage

from .element_index import parents_of
from .page_values import Document, not_too_many

if TYPE_CHECKING:
    from forum_reader.definition.pages import CommentRows

_DEEPEST = 500  # levels; a page that nests deeper is cut there


class Row(msgspec.Struct, frozen=True):
    """A row, and the id of the row around it."""

    node: Any
    parent_id: str | None


class Numbers:
    """Numbers of the posts of a page, by which answers refer to posts. They are removed from the rows' values."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._ids: dict[str, str] = {}
        self._answers: dict[str, str] = {}
        for values in rows:
            number, answers = values.pop("number", None), values.pop("parent_number", None)
            if number is not None and values["id"] is not None:
                self._ids.setdefault(number, values["id"])
            if answers is not None and values["id"] is not None:
                self._answers.setdefault(values["id"], answers)

    def answered(self, comment_id: str) -> str | None:
        """Return the id of the post that a row answers, by its number; None where that is unknown, or the row itself."""
        found = self._ids.get(self._answers.get(comment_id, ""))
        return None if found == comment_id else found


def rows(doc: Document, page: CommentRows) -> list[Row]:
    """Return all comments of a page."""
    found = doc.rows(page)
    if page.children is not None:
        return _of_json(doc, page, found)
    if page.nested:
        return _of_html(doc, page, found)
    return [Row(node, None) for node in found]


def nothing_of(what: str, fields: Any) -> UnreadablePage:
    """Return the error for a page without `what`, with the selectors that found nothing."""
    selectors = ", ".join(f"{name} = {' or '.join(field.select)}" for name, field in fields.declared if name in ("id", "body"))
    return UnreadablePage(f"has nothing of {what}: looked for {selectors}")


def _of_json(doc: Document, page: CommentRows, top: list[Any]) -> list[Row]:
    listed: list[Row] = []
    waiting: list[tuple[Any, str | None, int]] = [(node, None, 0) for node in reversed(top)]
    while waiting:
        node, parent_id, depth = waiting.pop()
        listed.append(Row(node, parent_id))
        if page.children is None or depth >= _DEEPEST:
            continue
        own_id = doc.peek(page.fields.id, node)
        for answers in doc.find(page.children, node):
            if isinstance(answers, list):
                waiting += [(answer, own_id, depth + 1) for answer in reversed(answers) if answer is not None]
    return not_too_many(listed)


def _of_html(doc: Document, page: CommentRows, found: list[Any]) -> list[Row]:
    parents = parents_of(found)
    around = frozenset(parents.values())
    ids = {row: doc.peek(page.fields.id, row) for row in found if row in around}
    return [Row(row, ids.get(parents[row])) for row in found]
