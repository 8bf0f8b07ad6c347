"""Times at which content was in the database: delays of publications, edits and deletions. Pure, but for the watch.

A sighting has the resolution of the watch (`EVERY_S`), and is never early.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from demo.compare import Piece, stored_comments, stored_posts
from forums.storage import Database

EVERY_S = 0.5
_BACK_S = 30.0  # a row that is stored late was fetched earlier: what the writer may be behind
KINDS = ("posts", "comments")


@dataclass
class Sightings:
    """Times (seconds since 1970) at which a version `(kind, id, hash)` and a tombstone `(kind, id)` were first seen."""

    versions: dict[tuple[str, str, str], float] = field(default_factory=dict)
    tombstones: dict[tuple[str, str], float] = field(default_factory=dict)

    def see(self, kind: str, pieces: Iterable[Piece], at: float) -> None:
        for piece in pieces:
            if piece.deleted:
                self.tombstones.setdefault((kind, piece.id), at)
            else:
                self.versions.setdefault((kind, piece.id, piece.hash), at)


@dataclass(frozen=True, kw_only=True)
class Delays:
    """Seconds from when something happened in the forum until it was in the database, and what was not seen."""

    published: list[float]
    edited: list[float]
    deleted: list[float]
    unseen: int  # gone or edited again before it was read, or not noticed

    @property
    def all(self) -> list[float]:
        return self.published + self.edited + self.deleted


def delays(truth: Mapping[str, Any], seen: Sightings) -> Delays:
    """Of what has happened since the forum's opening. What is in the forum and was never stored is a fault: see `truth.judge`."""
    published: list[float] = []
    edited: list[float] = []
    deleted: list[float] = []
    happened = 0
    first: dict[tuple[str, str], float] = {}
    for (kind, piece, _), at in seen.versions.items():
        first[kind, piece] = min(at, first.get((kind, piece), at))
    for kind in KINDS:
        for piece, at in truth["published"][kind].items():
            published += [first[kind, piece] - at] if (kind, piece) in first else []
        for piece, versions in truth["edited"][kind].items():
            for number, (at, _) in enumerate(versions[1:], 1):
                noticed = [seen.versions.get((kind, piece, version)) for _, version in versions[number:]]
                edited += _delay(at, noticed)
            happened += len(versions) - 1
        for piece, (at, _, _) in truth["deleted"][kind].items():
            deleted += _delay(at, [seen.tombstones.get((kind, piece))])
        happened += len(truth["published"][kind]) + len(truth["deleted"][kind])
    unseen = happened - len(published) - len(edited) - len(deleted)
    return Delays(published=published, edited=edited, deleted=deleted, unseen=unseen)


def noticed_after(truth: Mapping[str, Any], seen: Sightings, since: float) -> int:
    """Return the number of edits and deletions that were in the database only after this time; the last edit of a piece
    counts.
    """
    times = []
    for kind in KINDS:
        edits = truth["edited"][kind].items()
        times += [seen.versions.get((kind, piece, versions[-1][1]), 0.0) for piece, versions in edits]
        times += [seen.tombstones.get((kind, piece), 0.0) for piece in truth["deleted"][kind]]
    return sum(at > since for at in times)


def _delay(at: float, noticed: Iterable[float | None]) -> list[float]:
    """One delay, or none where it was not noticed."""
    times = [one for one in noticed if one is not None]
    return [min(times) - at] if times else []


class Watch:
    """Looks into the database in a thread of its own, from entering to leaving; leaving raises what went wrong there."""

    def __init__(self, database_url: str, site: str) -> None:
        self.seen = Sightings()
        self._url, self._site = database_url, site
        self._stop = threading.Event()
        self._failed: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._failed:
            raise self._failed

    def _run(self) -> None:
        try:
            with Database.from_url(self._url) as database:
                while not self._stop.wait(EVERY_S):
                    self._look(database)
                self._look(database)
        except Exception as failed:
            self._failed = failed

    def _look(self, database: Database) -> None:
        since = datetime.now(UTC) - timedelta(seconds=_BACK_S)
        for kind, stored in zip(KINDS, (stored_posts, stored_comments), strict=True):
            pieces = list(stored(database, self._site, since))
            self.seen.see(kind, pieces, time.time())
