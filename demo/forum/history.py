"""Changes of posts and comments since the opening, the reference for a crawler's result."""

from __future__ import annotations

from typing import Literal

Kind = Literal["posts", "comments"]
How = Literal["vanished", "placeholder", "thread"]


class History:
    """Changes by kind and id; times are in seconds since 1970, by the clock of the forum's dates.

    `published`: time of a new piece; pieces from the opening are not included. `edited`: all versions of an edited or moved
    piece, the original first, each `(time or None for the original, hash)`. `deleted`: `(time, how, hash until then)`, with how
    "vanished", "placeholder" ("[deleted]" is shown in its place), or "thread" (with its whole thread, or as its post).
    """

    def __init__(self) -> None:
        self.published: dict[Kind, dict[str, float]] = {"posts": {}, "comments": {}}
        self.edited: dict[Kind, dict[str, list[tuple[float | None, str]]]] = {"posts": {}, "comments": {}}
        self.deleted: dict[Kind, dict[str, tuple[float, How, str]]] = {"posts": {}, "comments": {}}

    def publish(self, kind: Kind, piece: str, at: float) -> None:
        self.published[kind][piece] = at

    def edit(self, kind: Kind, piece: str, at: float, *, before: str, after: str) -> None:
        """Add a version; `before` and `after` are hashes."""
        versions = self.edited[kind].setdefault(piece, [(None, before)])
        versions.append((at, after))

    def delete(self, kind: Kind, piece: str, at: float, how: How, before: str) -> None:
        self.deleted[kind][piece] = (at, how, before)
