"""A consumer group's view of the event stream, compared with what a living forum knows about itself (its `/truth`).

The consumer reads Redis and nothing else: no cursor, no counter and no table of the fleet. Only a comment's parent, which
events do not have, is given from outside, since the forum's hashes contain it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import redis

from demo.compare import content_hash

OUTPUT = "judged"
RULES = f'[outputs.{OUTPUT}]\nkind = "stream"\nbegin = "oldest"\nmax_length = 1_000_000\n'
_GROUP, _CONSUMER, _AT_ONCE = "judge", "one", 1000


class StreamConsumer:
    """Takes everything of a stream once, as a group's only consumer; `events` are in the order of arrival."""

    def __init__(self, client: redis.Redis, key: str) -> None:
        self._client = client
        self._key = key
        self.events: list[dict[str, Any]] = []
        client.xgroup_create(key, _GROUP, id="0", mkstream=True)

    def take(self) -> None:
        """Read and acknowledge what has come since the last time."""
        while found := self._client.xreadgroup(_GROUP, _CONSUMER, {self._key: ">"}, count=_AT_ONCE):
            entries = found[0][1]
            self.events += [json.loads(fields[b"event"]) for _, fields in entries]
            self._client.xack(self._key, _GROUP, *(number for number, _ in entries))


@dataclass(kw_only=True)
class Verdict:
    """How the events compare with the forum's record. Lists hold `<table> <id>` with what is wrong."""

    told: dict[str, int] = field(default_factory=dict)  # events by type
    twice: list[str] = field(default_factory=list)  # the same id again
    disordered: list[str] = field(default_factory=list)  # versions of a row that do not follow each other
    untold: list[str] = field(default_factory=list)  # the forum has it, the events do not end there
    untrue: list[str] = field(default_factory=list)  # told, and the forum's record does not have it
    unseen: int = 0  # versions that were replaced or deleted in the forum and never told: nobody read them in time

    @property
    def faults(self) -> list[str]:
        named = {"twice": self.twice, "order": self.disordered, "untold": self.untold, "untrue": self.untrue}
        return [f"{kind}: {one}" for kind, found in named.items() for one in found]


def judge_events(events: Iterable[Mapping[str, Any]], truth: Mapping[str, Any], parents: Mapping[str, str | None]) -> Verdict:
    """Every event against the forum's record, then the state that each row's events end with."""
    verdict, rows, seen = Verdict(), defaultdict[tuple[str, str], list[Mapping[str, Any]]](list), set[str]()
    for event in events:
        verdict.told[event["type"]] = verdict.told.get(event["type"], 0) + 1
        if event["id"] in seen:
            verdict.twice.append(event["id"])
            continue
        seen.add(event["id"])
        rows[f"{event['row']}s", event["item"]].append(event)
    for (table, item), told in rows.items():
        _judge_row(verdict, f"{table} {item}", told, _Record.of(truth, table, item), parents)
    for table in ("posts", "comments"):
        verdict.untold += [f"{table} {item} was never told" for item in truth[table] if (table, item) not in rows]
        verdict.unseen += sum(1 for item in truth["deleted"][table] if (table, item) not in rows)
    return verdict


@dataclass(frozen=True)
class _Record:
    """What the forum knows of one piece: every version it had, oldest first, and whether it is deleted."""

    versions: tuple[str, ...]
    deleted: bool

    @classmethod
    def of(cls, truth: Mapping[str, Any], table: str, item: str) -> _Record:
        deleted = truth["deleted"][table].get(item)
        edits = tuple(version for _, version in truth["edited"][table].get(item, ()))
        last = deleted[2] if deleted else truth[table].get(item)
        return cls(edits or ((last,) if last else ()), deleted is not None)


def _judge_row(
    verdict: Verdict, name: str, told: list[Mapping[str, Any]], record: _Record, parents: Mapping[str, str | None]
) -> None:
    if [event["version"] for event in told] != list(range(1, len(told) + 1)):
        verdict.disordered.append(f"{name}: {[event['version'] for event in told]}")
    place, before = -1, ""
    shown: set[int] = set()
    for event in told:
        if event["type"] in ("restored", "corrected") or (event["type"] == "new" and event["version"] > 1):
            verdict.untrue.append(f"{name} was {event['type']}")
        if event["type"] == "deleted" and not record.deleted:
            verdict.untrue.append(f"{name} was deleted")
        if event.get("text") is None:
            if event["type"] != "deleted":  # a deleted row may never have shown its text
                verdict.untrue.append(f"{name}: version {event['version']} ({event['type']}) without its text")
            continue
        version = _hash(event, parents)
        # an edit goes on to a later version, unless the same write told it already as moved
        first = place + 1 if event["type"] == "edited" and before != "moved" else max(place, 0)
        before = event["type"]
        found = next((at for at, one in enumerate(record.versions) if at >= first and one == version), None)
        if found is None:
            verdict.untrue.append(f"{name}: the text of version {event['version']} ({event['type']})")
        else:
            place = found
            shown.add(found)
    last_type = told[-1]["type"]
    if record.deleted != (last_type == "deleted"):
        verdict.untold.append(f"{name} ends with {last_type}; deleted: {record.deleted}")
    elif not record.deleted and (place < 0 or record.versions[place] != record.versions[-1]):  # equal: moved there and back
        verdict.untold.append(f"{name} ends with version {place + 1} of {len(record.versions)}")
    verdict.unseen += len(record.versions) - len(shown)


def _hash(event: Mapping[str, Any], parents: Mapping[str, str | None]) -> str:
    author, text, created_at = event.get("author"), event["text"], event["created_at"]
    if event["row"] == "post":
        return content_hash([event["item"], event["forum"], event.get("title"), text, author, created_at])
    return content_hash([event["item"], event["thread"], parents.get(event["item"]), author, text, created_at])
