"""The fleet's memory in Redis: how many crawlers are desired, the holder of each slot, the last report of each crawler.

A slot is `<spider>/<number>`. At most one process holds it at a time, by a lease with a fencing token: the token rises with every
holder, so one that was paused or cut off finds out at its next renewal that it is too late.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Mapping
from typing import cast

import redis

from redis_components.server.names import MOST_SLOTS, service_name, slot_number
from redis_components.server.printable import without_class_names
from redis_components.server.untrusted_values import (
    WrongValue,
    answers_of,
    as_bytes,
    as_text,
    decoded,
    hash_at,
    is_foreign,
    readable,
    server_time,
    whole,
)
from workers.state.keys import FleetKeys

from .keys import script
from .records import (
    CrawlerRecord,
    CrawlerState,
    ErrorRecord,
    Renewal,
    Slot,
    SlotCommand,
    SlotCommandKind,
    SlotStory,
    SlotView,
    slot_name,
)
from .reports import Note, note

__all__ = [
    "CrawlerRecord",
    "CrawlerState",
    "ErrorRecord",
    "Registry",
    "Renewal",
    "Slot",
    "SlotCommand",
    "SlotCommandKind",
    "SlotStory",
    "SlotView",
    "slot_name",
]

SLOT_TTL_S = 10.0  # a node that died is noticed after this; renewals come every 2 s, from the crawler and its supervisor
LAUNCH_TTL_S = 10.0  # a launch that was not picked up for this time is sent again
MOST_WAITING = 1000
KEPT_ERRORS = 100
LONGEST_ERROR = 2_000  # characters
NEWS_AFTER_MS = 60_000  # an error that comes again after so long is reported again
NO_END = -1  # PTTL of a key that stays: no slot script writes one


class Registry:
    """Everything that workers, crawlers and operators agree on. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis, keys: FleetKeys | None = None, *, slot_ttl_s: float = SLOT_TTL_S) -> None:
        self._client = self.client = client
        self._keys = keys or FleetKeys()
        self._ttl_ms = round(slot_ttl_s * 1000)
        self.slot_ttl_s = slot_ttl_s

    def now(self) -> float:
        """Return Redis's time as epoch seconds."""
        return server_time(self._client)

    # desired state

    def desired(self) -> dict[str, int]:
        """Return the desired number of crawlers for each spider that was scaled; others have their default
        (`workers.fleet.sizes`).

        Invalid sizes are left out.
        """
        return readable(hash_at(self._client, self._keys.desired()), size_of)

    def set_desired(self, spider: str, number: int, *, try_again: bool = True) -> None:
        """Scale one spider; takes effect with the next `reconcile_fleet`.

        Slots of this spider that were given up (crash-looping, refused) are tried again, as the operator has looked at them;
        `try_again=False` is for callers that have not. Raises ValueError for a negative number.
        """
        if number < 0:
            raise ValueError(f"{spider}: {number} crawlers are not possible; use 0 or more")
        given_up = [r.name for r in self.crawlers() if try_again and r.spider == spider and r.state.given_up]
        with self._client.pipeline() as pipe:
            pipe.hset(self._keys.desired(), spider, str(number))
            if given_up:
                pipe.hdel(self._keys.crawlers(), *given_up)
            pipe.execute()

    # slots

    def acquire(self, spider: str, number: int, owner: str) -> Slot | None:
        """Take the slot for `owner` (a name for people, such as its node); None when it is held. Raises ConfigError for an
        invalid slot.
        """
        name = slot_name(service_name(spider), slot_number(number))
        outcome, answer = script("slot_acquire")(
            self._client,
            self._slot_keys(spider, number),
            # Unique, so that the driver may send the command again when its answer was lost.
            {"name": name, "owner": f"{owner}#{secrets.token_hex(4)}", "ttl_ms": self._ttl_ms},
        )
        return Slot(spider=spider, number=number, token=int(answer), owner=owner) if outcome == b"acquired" else None

    def renew(self, slot: Slot, record: CrawlerRecord | None = None) -> Renewal:
        """Keep the slot for another TTL, and store the record if one is given. The answer shows if it is still ours."""
        outcome, order = script("slot_renew")(
            self._client,
            self._slot_keys(slot.spider, slot.number),
            {
                "name": slot.name,
                "token": slot.token,
                "owner": slot.owner,
                "ttl_ms": self._ttl_ms,
                "record": record.to_json() if record else "",
            },
        )
        return Renewal(held=outcome == b"renewed", order=_order(as_text(order)))

    def release(self, slot: Slot, record: CrawlerRecord | None = None) -> bool:
        """Free the slot and store the last record; False, and change nothing, when it belongs to another process by now."""
        outcome = script("slot_release")(
            self._client,
            self._slot_keys(slot.spider, slot.number),
            {"name": slot.name, "token": slot.token, "record": record.to_json() if record else ""},
        )
        return bool(outcome == b"released")

    def is_held(self, spider: str, number: int) -> bool:
        """Return True if the slot is held at this moment."""
        key = self._keys.slot(spider, number)
        held = self._client.get(key)
        return held is not None and _holder(held) is not None and self._client.pttl(key) != NO_END

    def order(self, view: SlotView, order: SlotCommand) -> None:
        """Send a command to the present holder of a slot; its successor does not get it."""
        if view.token is not None:
            self._client.hset(self._keys.orders(), view.name, f"{view.token}|{order.word}|{order.reason}")

    def slots(self, desired: Mapping[str, int], crawlers: Iterable[CrawlerRecord]) -> list[SlotView]:
        """Return every slot that is desired or has a record in `crawlers`, for `workers.fleet.reconcile.plan`."""
        records = {(r.spider, r.number): r for r in crawlers if r.number is not None}
        wanted = {(spider, number) for spider, n in desired.items() for number in range(n)}
        names = sorted(wanted | records.keys())
        with self._client.pipeline(transaction=False) as pipe:
            for spider, number in names:
                pipe.get(self._keys.slot(spider, number))
                pipe.get(self._keys.launch(spider, number))
                pipe.pttl(self._keys.slot(spider, number))
            answers = answers_of(pipe)
        views = []
        for (spider, number), held, launching, left in zip(names, answers[::3], answers[1::3], answers[2::3], strict=True):
            token, owner = (_holder(held) if held and left != NO_END else None) or (None, "")
            views.append(
                SlotView(
                    spider=spider,
                    number=number,
                    token=token,
                    owner=owner.rpartition("#")[0] or owner or None,
                    launching_on=as_text(launching) if launching else None,
                    record=records.get((spider, number)),
                )
            )
        return views

    # launches

    def mark_launch(self, spider: str, number: int, node: str, *, not_on: str | None = None) -> bool:
        """Claim the right to send one launch of this slot to `node`; False while another one is on its way.

        `not_on`: the node that the last one was sent to, if that will not take it any more.
        """
        keys = {"launch": self._keys.launch(spider, number)}
        args = {"node": node, "not_on": not_on or "", "ttl_ms": round(LAUNCH_TTL_S * 1000)}
        return bool(script("launch_mark")(self._client, keys, args))

    def clear_launch(self, spider: str, number: int) -> None:
        """Remove the mark of a launch that has arrived."""
        self._client.delete(self._keys.launch(spider, number))

    def store_waiting(self, slots: Iterable[tuple[int, str, int]]) -> None:
        """Store the slots for which there is no room, each with its rank, in the order in which they get some."""
        key = self._keys.waiting_slots()
        lines = [f"{rank}|{slot_name(spider, number)}" for rank, spider, number in slots][:MOST_WAITING]
        with self._client.pipeline() as pipe:
            pipe.delete(key)
            if lines:
                pipe.rpush(key, *lines)
                pipe.pexpire(key, round(LAUNCH_TTL_S * 1000))
            pipe.execute()

    def first_waiting(self) -> tuple[int, str, int] | None:
        """Return the first slot for which there was no room, with its rank."""
        head = as_text(self._client.lindex(self._keys.waiting_slots(), 0) or b"")
        found = re.fullmatch(r"(-?\d{1,9})\|(.+)/(\d{1,6})", head, re.ASCII | re.DOTALL)
        return (int(found[1]), found[2], int(found[3])) if found else None

    def take_waiting(self, rank: int, spider: str, number: int) -> bool:
        """Take a slot from those without room; False where another process was quicker."""
        return bool(self._client.lrem(self._keys.waiting_slots(), 1, f"{rank}|{slot_name(spider, number)}"))

    # records and errors

    def note(self, record: CrawlerRecord) -> Renewal:
        """Store the heartbeat of a crawler that holds no slot (`python -m workers.crawler` by hand)."""
        keys, args = {"crawlers": self._keys.crawlers()}, {"name": record.name, "record": record.to_json()}
        script("crawler_record")(self._client, keys, args)
        return Renewal(held=True)

    def crawlers(self) -> list[CrawlerRecord]:
        """Return the last record of each crawler, by name; one that cannot be read is left out."""
        found = readable(hash_at(self._client, self._keys.crawlers()), crawler_of).values()  # one per slot: bounded by the fleet
        return sorted(found, key=lambda r: (r.spider, r.number is None, r.number or 0, r.pid))

    def crawler(self, spider: str, number: int) -> CrawlerRecord | None:
        """Return the last record of one slot; None where there is none that can be read."""
        name = slot_name(spider, number)
        raw = self._client.hget(self._keys.crawlers(), name)
        return readable({name.encode(): as_bytes(raw)}, crawler_of).get(name) if raw else None

    def forget(self, names: Iterable[str]) -> None:
        """Drop the records of crawlers that are gone for good (`forum_list/3`, `forum_list/hand-4711`)."""
        if gone := list(names):
            self._client.hdel(self._keys.crawlers(), *gone)

    def add_note(self, one: Note) -> None:
        """Add a note, which becomes an event."""
        note(self._client, one)

    def report_error(self, where: str, what: str) -> bool:
        """Add a line to the fleet's errors, which `trawl status` shows; the newest 100 are kept.

        The same error again is counted, not added: one that comes with every beat must not push out the others. Returns whether
        it is news: it did not happen within the last minute, here or elsewhere. Of processes that report it at once, one has
        news.

        Where the key of the errors holds something else nothing is added: that must not undo what led to the report.
        """
        what = without_class_names(what)[:LONGEST_ERROR].encode(errors="replace").decode()  # a lone surrogate is not read again
        try:
            self._add_error(where, what)
        except redis.ResponseError as error:
            if not is_foreign(error):
                raise
        digest = hashlib.blake2b(what.encode(), digest_size=8).hexdigest()
        return self._client.set(self._keys.error_news(digest), "1", px=NEWS_AFTER_MS, get=True) is None

    def _add_error(self, where: str, what: str) -> None:
        times = 1
        for line in self._client.lrange(self._keys.errors(), 0, 19):
            known = error_of(line)
            if known is not None and (known.where, known.what) == (where, what):
                times = known.times + 1
                self._client.lrem(self._keys.errors(), 1, cast("str", line))
                break
        with self._client.pipeline() as pipe:
            pipe.lpush(self._keys.errors(), json.dumps({"at": self.now(), "where": where, "what": what, "times": times}))
            pipe.ltrim(self._keys.errors(), 0, KEPT_ERRORS - 1)
            pipe.execute()

    def errors(self, limit: int = 10) -> list[ErrorRecord]:
        """Return the last errors, newest first; unreadable ones are left out."""
        try:
            lines = self._client.lrange(self._keys.errors(), 0, limit - 1) if limit > 0 else []
        except redis.ResponseError as error:
            if not is_foreign(error):
                raise
            return []
        return [known for known in map(error_of, lines) if known is not None]

    def _slot_keys(self, spider: str, number: int) -> dict[str, str]:
        return {
            "slot": self._keys.slot(spider, number),
            "fences": self._keys.fences(),
            "orders": self._keys.orders(),
            "crawlers": self._keys.crawlers(),
        }


def _order(text: str) -> SlotCommand | None:
    word, _, reason = text.partition("|")
    # A word that this version does not know is left for a newer one to obey.
    return SlotCommand(word=SlotCommandKind(word), reason=reason) if word in set(SlotCommandKind) else None


def size_of(name: str, raw: bytes) -> int:  # noqa: ARG001 - the form of what reads a field
    """Return a desired size. Raises ValueError."""
    return whole(raw, 0, MOST_SLOTS)


def crawler_of(name: str, raw: bytes) -> CrawlerRecord:
    """Return a crawler's record under its own name. Raises ValueError."""
    record = CrawlerRecord.from_json(raw)
    if record.name != name:
        raise WrongValue(f"speaks for another one, {record.name!r:.100}")
    if not record.is_sound:
        raise ValueError(f"no crawler is called {record.name!r:.100}")
    return record


def error_of(line: bytes | str) -> ErrorRecord | None:
    """Return the error of a line; None where it cannot be read."""
    try:
        return decoded(line, ErrorRecord)
    except ValueError:
        return None


def _holder(held: bytes | str) -> tuple[int, str] | None:
    """Return token and owner; None for another form than that of the slot scripts."""
    found = re.fullmatch(r"(\d{1,16})\|(.*)", as_text(held), re.ASCII | re.DOTALL)
    return (int(found[1]), found[2]) if found else None
