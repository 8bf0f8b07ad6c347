"""The fleet's memory in Redis: how many crawlers are desired, who holds which slot, what each was last heard to do.

A slot is `<spider>/<number>`. At most one process holds it at a time, by a lease with a fencing token: the token rises with every
holder, so one that was paused or cut off finds out at its next renewal that it is too late.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping

import redis

from .answers import as_text, server_time
from .fleet_records import (
    CrawlerRecord,
    CrawlerState,
    ErrorRecord,
    Order,
    OrderWord,
    Renewal,
    Slot,
    SlotStory,
    SlotView,
    slot_name,
)
from .keys import FleetKeys
from .scripts import script

__all__ = [
    "CrawlerRecord",
    "CrawlerState",
    "ErrorRecord",
    "Order",
    "OrderWord",
    "Registry",
    "Renewal",
    "Slot",
    "SlotStory",
    "SlotView",
    "slot_name",
]

SLOT_TTL_S = 10.0  # a node that died is noticed after this; renewals come every 2 s, from the crawler and its supervisor
LAUNCH_TTL_S = 10.0  # a launch that nobody picked up for so long is sent again
KEPT_ERRORS = 100


class Registry:
    """Everything that workers, crawlers and operators agree on. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis, keys: FleetKeys | None = None, *, slot_ttl_s: float = SLOT_TTL_S) -> None:
        self._client = client
        self._keys = keys or FleetKeys()
        self._ttl_ms = round(slot_ttl_s * 1000)
        self.slot_ttl_s = slot_ttl_s

    def now(self) -> float:
        """Redis's time as epoch seconds."""
        return server_time(self._client)

    # desired state

    def desired(self) -> dict[str, int]:
        """Desired number of crawlers for each spider that somebody has scaled; others have their default (`workers.fleet`)."""
        return {as_text(spider): int(n) for spider, n in self._client.hgetall(self._keys.desired()).items()}

    def set_desired(self, spider: str, number: int, *, try_again: bool = True) -> None:
        """Scale one spider; takes effect with the next `reconcile_fleet`.

        Slots of this spider that were given up (crash-looping, refused) are tried again: who scales has looked at them.
        `try_again=False` is for who has not.
        Raises ValueError for a negative number.
        """
        if number < 0:
            raise ValueError(f"{spider}: {number} crawlers cannot be; say 0 or more")
        given_up = [r.name for r in self.crawlers() if try_again and r.spider == spider and r.state.given_up]
        with self._client.pipeline() as pipe:
            pipe.hset(self._keys.desired(), spider, str(number))
            if given_up:
                pipe.hdel(self._keys.crawlers(), *given_up)
            pipe.execute()

    # slots

    def acquire(self, spider: str, number: int, owner: str) -> Slot | None:
        """Take the slot for `owner` (a name for people, such as its node); None when somebody holds it."""
        name = slot_name(spider, number)
        outcome, said = script("slot_acquire")(
            self._client,
            self._slot_keys(spider, number),
            # Unique, so that the driver may send the command again when its answer was lost.
            {"name": name, "owner": f"{owner}#{secrets.token_hex(4)}", "ttl_ms": self._ttl_ms},
        )
        return Slot(spider=spider, number=number, token=int(said), owner=owner) if outcome == b"acquired" else None

    def renew(self, slot: Slot, record: CrawlerRecord | None = None) -> Renewal:
        """Keep the slot for another TTL, and store the record if one is given. The answer says whether it is still ours."""
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
        """Free the slot and store the last record; False, and nothing is changed, when it belongs to somebody else by now."""
        outcome = script("slot_release")(
            self._client,
            self._slot_keys(slot.spider, slot.number),
            {"name": slot.name, "token": slot.token, "record": record.to_json() if record else ""},
        )
        return bool(outcome == b"released")

    def is_held(self, spider: str, number: int) -> bool:
        """Whether somebody holds the slot at this moment."""
        return bool(self._client.exists(self._keys.slot(spider, number)))

    def order(self, view: SlotView, order: Order) -> None:
        """Tell the present holder of a slot what to do; its successor will not hear it."""
        if view.token is not None:
            self._client.hset(self._keys.orders(), view.name, f"{view.token}|{order.word}|{order.reason}")

    def slots(self, desired: Mapping[str, int], crawlers: Iterable[CrawlerRecord]) -> list[SlotView]:
        """Every slot that is desired or was heard of in `crawlers`: what `workers.reconciler.plan` decides on."""
        records = {(r.spider, r.number): r for r in crawlers if r.number is not None}
        wanted = {(spider, number) for spider, n in desired.items() for number in range(n)}
        names = sorted(wanted | records.keys())
        with self._client.pipeline(transaction=False) as pipe:
            for spider, number in names:
                pipe.get(self._keys.slot(spider, number))
                pipe.get(self._keys.launch(spider, number))
            answers = pipe.execute()
        views = []
        for (spider, number), held, launching in zip(names, answers[::2], answers[1::2], strict=True):
            token, _, owner = as_text(held).partition("|") if held else ("", "", "")
            views.append(
                SlotView(
                    spider=spider,
                    number=number,
                    token=int(token) if token else None,
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
        """The launch has arrived."""
        self._client.delete(self._keys.launch(spider, number))

    # records and errors

    def note(self, record: CrawlerRecord) -> Renewal:
        """Heartbeat of a crawler that holds no slot (`python -m workers.crawler` by hand)."""
        keys, args = {"crawlers": self._keys.crawlers()}, {"name": record.name, "record": record.to_json()}
        script("crawler_record")(self._client, keys, args)
        return Renewal(held=True)

    def crawlers(self) -> list[CrawlerRecord]:
        """The last record of each crawler, by name; one that cannot be read is left out."""
        found = []
        for raw in self._client.hvals(self._keys.crawlers()):  # one per slot: bounded by the fleet's size
            try:
                found.append(CrawlerRecord.from_json(raw))
            except ValueError:
                continue
        return sorted(found, key=lambda r: (r.spider, r.number is None, r.number or 0, r.pid))

    def crawler(self, spider: str, number: int) -> CrawlerRecord | None:
        """The last record of one slot; None where there is none that can be read."""
        raw = self._client.hget(self._keys.crawlers(), slot_name(spider, number))
        try:
            return CrawlerRecord.from_json(raw) if raw else None
        except ValueError:
            return None

    def forget(self, names: Iterable[str]) -> None:
        """Drop the records of crawlers that are gone for good (`forum_list/3`, `forum_list/hand-4711`)."""
        if gone := list(names):
            self._client.hdel(self._keys.crawlers(), *gone)

    def report_error(self, where: str, what: str) -> None:
        """Add a line to the fleet's errors, which `trawl status` shows; the newest 100 are kept.

        The same error again is counted, not added: one that comes with every beat must not push out the others.
        """
        times = 1
        for line in self._client.lrange(self._keys.errors(), 0, 19):
            known = json.loads(line)
            if (known["where"], known["what"]) == (where, what):
                times = known["times"] + 1
                self._client.lrem(self._keys.errors(), 1, as_text(line))
                break
        with self._client.pipeline() as pipe:
            pipe.lpush(self._keys.errors(), json.dumps({"at": self.now(), "where": where, "what": what, "times": times}))
            pipe.ltrim(self._keys.errors(), 0, KEPT_ERRORS - 1)
            pipe.execute()

    def errors(self, limit: int = 10) -> list[ErrorRecord]:
        """The last errors, newest first."""
        lines = self._client.lrange(self._keys.errors(), 0, limit - 1) if limit > 0 else []
        return [ErrorRecord(**json.loads(line)) for line in lines]

    def _slot_keys(self, spider: str, number: int) -> dict[str, str]:
        return {
            "slot": self._keys.slot(spider, number),
            "fences": self._keys.fences(),
            "orders": self._keys.orders(),
            "crawlers": self._keys.crawlers(),
        }


def _order(text: str) -> Order | None:
    word, _, reason = text.partition("|")
    # A word that this version does not know is left for a newer one to obey.
    return Order(word=OrderWord(word), reason=reason) if word in set(OrderWord) else None
