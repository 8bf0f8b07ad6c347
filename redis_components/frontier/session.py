"""The numbered messages of one process to Redis: one in flight, repeated until it is answered, each applied at most once."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from redis_components.errors import TrawlError
from redis_components.server.scripts import SLOWEST_RETRY_S

from . import messages
from .config import FrontierConfig
from .holds import lots_in
from .messages import Lane, LeaseDemand, Message, Reply, decode
from .outbox import Batch
from .stock import shared_clock
from .transport import Clock, Exchanger, lasting

logger = logging.getLogger(__name__)

ASKING = "0"
"""As the number of the last answer: never that of a message, so that Redis applies nothing and returns its record of
the owner.
"""


@dataclass(kw_only=True, slots=True)
class Flight:
    """The message on its way."""

    number: int
    batch: Batch
    wish: LeaseDemand
    carried_all: bool
    """Nothing stayed in the outbox."""
    keys: dict[str, str | list[str]]
    args: dict[str, Any]
    started: float
    sent: float = 0.0
    """When it was sent last."""
    tries: int = 0


class Session:
    """The state of a session: its owner, the number of its messages, and if Redis answers."""

    def __init__(
        self,
        config: FrontierConfig,
        exchanger: Exchanger,
        clock: Clock,
        answered: Callable[[Flight, Reply], None],
        refused: Callable[[TrawlError], None],
    ) -> None:
        self.owner = config.owner
        self.number = 0
        """Of the last message. It never starts again: a lease id must not come twice. It is the time (ms), or one more than the
        last one where that is later: so a lease id has the time since when it is held.
        """
        self.busy = False
        """A message is in flight."""
        self.away = False
        """Redis did not answer the last try."""
        self._config = config
        self._exchanger = exchanger
        self._turns = bool(config.turn_by)
        more = len(config.keys.more_start_urls)
        self._constant = {name: getattr(config, name) for name in messages.OF_CONFIG} | {
            "filter": config.filter.options(),
            "start_keys": 2 * more + 1 if self._turns else more,  # besides the first
        }
        fed = config.next_keys
        self._lanes: dict[Lane, str] = {"later": fed.later_tasks(), "backlog": fed.backlog()} if fed else {}
        self._clock = clock
        self._on_answer = answered
        self._on_refusal = refused
        self._was_answered = False
        self._ends_on_lasting_errors = config.ends_on_lasting_errors
        self._flight: Flight | None = None
        self._previous = ""
        self._generation = 0
        self._first = 1
        self._former: list[tuple[str, int]] = []  # names that were fenced and that Redis knew, each with its first number
        self._to_ask: list[tuple[str, int]] = []  # those whose last number is to be asked for, the last one first
        self._away_since = 0.0
        self._reclaim = ""
        self._reclaim_from = -math.inf

    @property
    def introduced(self) -> bool:
        """The first message of an owner only introduces it: were it applied, the owner reclaimed, and the message sent again, it
        would not be known that it had been applied.
        """
        return self._previous != "" and not self._to_ask

    @property
    def inquiring(self) -> bool:
        """The last numbers of former names have to be asked for before anything is sent or leased. They are asked for once Redis
        has the new name: if it comes back older after that, it does not have that one.
        """
        return bool(self._to_ask)

    @property
    def asks(self) -> bool:
        """The next message, or the one in flight, only asks for Redis's record of a former name."""
        return self._previous != "" and bool(self._to_ask)

    @property
    def _speaker(self) -> tuple[str, int]:
        """Name and first number of whose message that is."""
        return self._to_ask[-1] if self.asks else (self.owner, self._first)

    def known(self, last_applied: int) -> int:
        """Return the last exchange that may be in a Redis which refused the message in flight and has `last_applied` for its
        name, or 0: then all messages under this name are lost, and former names are to be asked for.
        """
        return last_applied or self._speaker[1] - 1

    def send(self, batch: Batch, wish: LeaseDemand, *, carried_all: bool) -> None:
        """Send a message. The answer comes to `answered`, whenever Redis gives one."""
        self.busy = True
        time_ms = int(shared_clock.time() * 1000) if self._previous else 0  # an answer has set the clock
        self.number = max(self.number + 1, time_ms)
        blobs = batch.blobs()
        item_keys = messages.own_lists(batch, self._lanes) if batch.keyed_items or batch.tasks else {}
        lots = lots_in(batch.parks, wish.unpark) if batch.parks or wish.unpark else {}
        speaker = self._speaker[0]
        self._flight = Flight(
            number=self.number,
            batch=batch,
            wish=wish,
            carried_all=carried_all,
            keys=messages.keys_of(
                self._config.keys,
                self._config.next_keys,
                speaker,
                self._reclaim or speaker,
                item_keys,
                lots,
                turns=self._turns,
            ),
            args={
                "message": messages.encode(self._message(batch, wish, item_keys, lots, list(map(len, blobs)))),
                "blobs": b"".join(blobs),
            },
            started=self._clock.now(),
        )
        self._send()

    def _message(
        self, batch: Batch, wish: LeaseDemand, item_keys: dict[str, int], lots: dict[str, int], sizes: list[int]
    ) -> Message:
        return Message(
            **self._constant,
            **msgspec.structs.asdict(wish),
            **{kind: getattr(batch, kind) for kind in messages.OF_BATCH},
            owner=self._speaker[0],
            number=str(self.number),
            previous=ASKING if self.asks else self._previous,
            reclaim=self._reclaim,
            requests=[request.score for request in batch.requests],
            tasks=[
                (task.id, task.token, item_keys[self._lanes[task.lane]] if task.lane else 0, int(task.wide), task.site)
                for task in batch.tasks
            ],
            items=len(batch.items),
            keyed_items=[item_keys[item.key] for item in batch.keyed_items],
            lots=list(lots),
            parks=[(park.id, lots[park.lot]) for park in batch.parks],
            paces=[
                (place, request.lane, math.ceil(request.not_before * 1000))
                for place, request in enumerate(batch.requests, 1)
                if request.lane or request.not_before
            ],
            sizes=sizes,
        )

    def _send(self) -> None:
        if self._flight is not None:
            self._flight.sent = self._clock.now()
            self._exchanger.send(self._flight.keys, self._flight.args, self._answered)

    def _answered(self, raw: list[object] | Exception) -> None:
        flight = self._flight
        if flight is None:
            return
        if isinstance(raw, Exception):
            self._again(flight, raw)
            return
        self._flight, self.busy = None, False
        now = self._clock.now()
        if self.away:
            logger.warning("Redis answers again after %.1f s; the crawl goes on", now - self._away_since)
        self._was_answered = True
        reply = decode(raw)
        shared_clock.learn(reply.now, now - flight.sent)
        if reply.outcome in ("applied", "repeated"):
            self._previous = str(flight.number)
            self._exchanger.keep_alive(self._config.keys.owners(), self.owner, self._config.ttl_ms)
            if now - flight.started > self._config.ttl_s / 2:  # Redis was away for others too: they come back within a retry
                self._reclaim_from = now + max(self._config.ttl_s / 2, 2 * SLOWEST_RETRY_S)
            self._reclaim = reply.expired if reply.expired != self.owner and now >= self._reclaim_from else ""
        self._on_answer(flight, reply)

    def _again(self, flight: Flight, error: Exception) -> None:
        if self._ends_on_lasting_errors and not self._was_answered and (refusal := lasting(error)):
            self._on_refusal(refusal)
            return
        flight.tries += 1
        if not self.away:
            self.away, self._away_since = True, self._clock.now()
            logger.warning(
                "Redis does not take the exchange (%s: %s); keeping everything, trying again", type(error).__name__, error
            )
        self._clock.call_later(min(SLOWEST_RETRY_S, 0.05 * 2 ** min(flight.tries, 6)), self._send)

    def heard(self, last_applied: int, *, keeps: bool) -> None:
        """Take the last number of a former name; the one before is asked for where Redis has none, while anything is kept."""
        self._to_ask = self._to_ask[:-1] if keeps and not last_applied else []

    def start_over(self, last_applied: int, *, keeps: bool) -> None:
        """Go on under a new name, fenced by a Redis that knows all up to `last_applied`, or 0, not this owner at all. While
        something is kept that such a Redis may lack, it is asked for the former names first.
        """
        if last_applied:
            self._former.append((self.owner, self._first))
        self._generation += 1
        self.owner, self._first = f"{self._config.owner}~{self._generation}", self.number + 1
        self._previous = self._reclaim = ""
        self._to_ask = self._former[:] if keeps else []

    def end(self) -> None:
        """Send no more, and ignore further answers. Ending twice is allowed."""
        self._flight, self.busy = None, False
        self._exchanger.close()
