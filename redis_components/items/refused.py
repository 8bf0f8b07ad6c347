"""Items that a consumer refused: kept, each with its reason, until they are replayed or purged.

An entry is one line of JSON (`at`, `reason`) and the item, byte for byte. Entries of older versions are one line of JSON with
the item as text, of which long ones were cut: these cannot go back.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha1
from typing import Any

import msgspec
import redis

from redis_components.admin.dead_letters import Cleared, clear
from redis_components.keys import CrawlKeys
from redis_components.server.scripts import script

SHOWN_CHARS = 200


@dataclass(frozen=True, kw_only=True)
class RefusedItem:
    """One item that a consumer could not take."""

    place: int  # from the head of the list, where the oldest ones are
    sha: str
    at_s: float  # epoch seconds of Redis
    reason: str
    payload: bytes
    can_go_back: bool = True  # False: an older version kept only its beginning
    is_text: bool = False  # of an older version: the payload is not behind a newline, but within the JSON

    @property
    def shown(self) -> str:
        """Its beginning, in one line."""
        text = self.payload[: 4 * SHOWN_CHARS].decode("utf-8", "backslashreplace")
        short = text[:SHOWN_CHARS] + ("…" if len(text) > SHOWN_CHARS else "")
        return short if short.isprintable() else repr(short)


def parse(raw: bytes, place: int) -> RefusedItem | None:
    """Return the entry, or None for one that Trawl did not write."""
    head, newline, payload = raw.partition(b"\n")
    try:
        fields = json.loads(head)
        at_s, reason = float(fields["at"]), str(fields["reason"])
        if not newline:
            payload = fields["item"].encode()
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    return RefusedItem(
        place=place,
        sha=sha1(raw, usedforsecurity=False).hexdigest(),
        at_s=at_s,
        reason=reason,
        payload=payload,
        can_go_back=bool(newline) or "(cut: it has " not in reason,
        is_text=not newline,
    )


def newest(client: redis.Redis, keys: CrawlKeys, limit: int) -> tuple[list[RefusedItem], int]:
    """Return the `limit` newest entries, newest first, and the number of all."""
    pipe = client.pipeline(transaction=True)
    pipe.llen(keys.bad_items())
    pipe.lrange(keys.bad_items(), -limit, -1)
    length, raws = pipe.execute()
    entries = [parse(raw, length - len(raws) + n) for n, raw in enumerate(raws)] if limit > 0 else []
    return [entry for entry in reversed(entries) if entry is not None], length


def replay(client: redis.Redis, keys: CrawlKeys, *, limit: int | None = None, reason: str = "") -> Cleared:
    """Append items to the item stream again, oldest first, for the consumer to try once more.

    At most `limit` of them, only those whose reason contains `reason` (in any case). Safe next to crawlers, consumers and other
    replays, and when it is repeated: each item is in the stream or in the list, and never in both.
    """

    def put_back(chosen: list[RefusedItem]) -> int:
        operands: list[Any] = []
        for entry in chosen:
            operands += [entry.place, entry.sha, entry.payload if entry.is_text else b""]
        lists = {"bad": keys.bad_items(), "items": keys.item_stream()}
        args = {"groups": msgspec.msgpack.encode(keys.item_groups), "chosen": operands}
        return int(script("items_replay")(client, lists, args))

    wanted = reason.casefold()
    return clear(
        client,
        keys.bad_items(),
        parse,
        put_back,
        lambda entry: entry.can_go_back and wanted in entry.reason.casefold(),
        limit,
    )


def purge(client: redis.Redis, keys: CrawlKeys, *, before_s: float | None = None, reason: str = "") -> Cleared:
    """Forget refused items from before `before_s` (epoch seconds; None: all) for good. Safe when it is repeated."""

    def forget(chosen: list[RefusedItem]) -> int:
        operands = [part for entry in chosen for part in (entry.place, entry.sha)]
        return int(script("dead_purge")(client, {"dead": keys.bad_items()}, {"chosen": operands}))

    wanted = reason.casefold()

    def is_wanted(entry: RefusedItem) -> bool:
        return (before_s is None or entry.at_s < before_s) and wanted in entry.reason.casefold()

    return clear(client, keys.bad_items(), parse, forget, is_wanted, None)
