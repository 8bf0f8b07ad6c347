"""What has happened to posts and comments since the opening: what a crawler can be judged by."""

from __future__ import annotations

from typing import Literal

Kind = Literal["posts", "comments"]
How = Literal["vanished", "placeholder", "thread"]


class History:
    """By kind and id; every time is in seconds since 1970, by the clock that the forum's dates are of.

    `published`: when a piece appeared; what was there at the opening is not in it. `edited`: all versions of a piece that was
    edited or moved, the original first, each `(time or None for the original, hash)`. `deleted`: `(time, how, hash until
    then)`, where how is "vanished", "placeholder" ("[deleted]" stands where it was), or "thread" (with its whole thread, or as
    its post).
    """

    def __init__(self) -> None:
        self.published: dict[Kind, dict[str, float]] = {"posts": {}, "comments": {}}
        self.edited: dict[Kind, dict[str, list[tuple[float | None, str]]]] = {"posts": {}, "comments": {}}
        self.deleted: dict[Kind, dict[str, tuple[float, How, str]]] = {"posts": {}, "comments": {}}

    def publish(self, kind: Kind, piece: str, at: float) -> None:
        self.published[kind][piece] = at

    def edit(self, kind: Kind, piece: str, at: float, *, before: str, after: str) -> None:
        """`before` and `after`: its hashes."""
        versions = self.edited[kind].setdefault(piece, [(None, before)])
        versions.append((at, after))

    def delete(self, kind: Kind, piece: str, at: float, how: How, before: str) -> None:
        self.deleted[kind][piece] = (at, how, before)
