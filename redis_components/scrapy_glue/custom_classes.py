"""Queue classes of the user's: any class with `push`, `pop`, `__len__` and `clear`.

Such a queue is an adviser of order; the truth is the frontier's READY, which has another key than the queue then. A request
enters READY in an exchange, as always, under an order that this process chose. Once the exchange has confirmed it as new, `push`
gets it with a token that names this order. A request from `pop` is claimed: an exchange leases exactly that request, if it is
not leased already. Where `pop` has nothing while READY has something, a process died in between (or is at it), and READY is
leased in its own order. So nothing is lost or doubled by anything that the class does.

The class is called in the reactor's thread, which waits for it, and each request takes an exchange more.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import redis
from redis.exceptions import ClusterDownError
from scrapy import Request

from redis_components.errors import Undecodable, Unserializable
from redis_components.frontier.holds import names_of
from redis_components.frontier.messages import NO_FILTER, Lease, NewRequest, Reply
from redis_components.server.scripts import script

if TYPE_CHECKING:
    from redis_components.codec.requests import Codec
    from redis_components.frontier.frontier import Frontier
    from redis_components.frontier.outbox import Batch


TOKEN = "trawl_order"  # noqa: S105  # of meta
_ORDER_BYTES = 8

logger = logging.getLogger(__name__)


def _orders() -> Iterator[bytes]:
    """Yield orders of 8 bytes that no other process chooses: 5 random bytes, 3 that count up."""
    while True:
        series = secrets.token_bytes(5)
        yield from (series + count.to_bytes(3, "big") for count in range(2**24))


class CustomQueue:
    """The frontier's requests in the order of `queue`; also the codec of the payloads, which begin with their order.

    `keep(request, reason)` takes requests of other origin in the queue that cannot be stored.
    """

    def __init__(self, queue: Any, frontier: Frontier, codec: Codec, *, keep: Callable[[Request, str], None]) -> None:
        self._queue = queue
        self._frontier = frontier
        self._codec = codec
        self._keep = keep
        self._orders = _orders()
        self._chosen: dict[bytes, Request] = {}  # popped; their claims are on the way
        self._adopted: set[bytes] = set()  # brought by the queue, so not pushed once they are stored
        self._claimed: deque[Lease] = deque()
        self._dry_at: int | None = None  # exchanges made when the queue was found empty
        self._failed: set[str] = set()
        self._pop_fails = False  # then it would never be found empty
        self._fruitless = False  # READY had none of the queue's last requests

    def encode(self, request: Request) -> bytes:
        """Order and payload of `request`. Raises Unserializable."""
        return next(self._orders) + self._codec.encode(request)

    @staticmethod
    def payload_of(encoded: bytes) -> bytes:
        """Return a result of `encode` without its order."""
        return encoded[_ORDER_BYTES:]

    def decode(self, data: bytes | Request) -> Request:
        """Return the request of a payload, or of a lease from `take`. Raises Undecodable."""
        return self._codec.decode(data) if isinstance(data, bytes) else data

    def __len__(self) -> int:
        """Return the number of requests leased to this process and not started."""
        return len(self._claimed)

    @property
    def is_dry(self) -> bool:
        """The queue is empty, as far as this process knows."""
        if self._claimed or self._chosen:
            return False
        return self._pop_fails or not self._call("len", lambda: len(self._queue))

    def take(self) -> Lease | None:
        """Return the next leased request; its `data` is the request as the queue gave it back. None while there is none."""
        if self._frontier.pausing:
            return None
        if len(self._claimed) <= self._frontier.config.concurrency // 2:
            self._choose()
        while self._claimed:
            lease = self._claimed.popleft()
            if not self._parks(lease):
                return lease
        return None

    def _parks(self, lease: Lease) -> bool:
        """Set aside requests claimed before their site was held; later it comes in the order of READY."""
        if not self._frontier.holds.sites:
            return False
        try:
            request = self.decode(lease.data)
        except Undecodable:  # the scheduler sets it aside
            return False
        return self._frontier.park(lease.id, names_of(request.meta.get("site"), request.url))

    def _choose(self) -> None:
        frontier = self._frontier
        for _ in range(frontier.config.concurrency - len(self._claimed) - len(self._chosen)):
            self._pop_fails = True
            request = self._call("pop", self._pop)
            if request is None:
                if not self._claimed and not self._chosen:
                    self._look()
                return
            self._dry_at = None
            order = self._order_of(request)
            if order is not None:
                self._chosen[order] = request
                frontier.claim(order.hex())
        if self._fruitless and frontier.ready:
            frontier.look(frontier.config.concurrency)

    def _pop(self) -> Request | None:
        """Return a copy of the queue's next request: the queue may keep its own, and give it again."""
        request = self._queue.pop(0)
        if request is not None and not isinstance(request, Request):
            raise TypeError(f"pop() gave {request!r:.100}, which is not a request")
        copied = request and request.copy()
        self._pop_fails = False
        return copied

    def _look(self) -> None:
        """Ask READY itself only when the queue was empty before the last exchange and still is: what others store, they push."""
        was_dry_before = self._dry_at is not None and self._dry_at < self._frontier.exchanges
        if self._dry_at is None:
            self._dry_at = self._frontier.exchanges
        self._frontier.look(self._frontier.config.concurrency if was_dry_before and self._frontier.ready else 0)

    def _order_of(self, request: Request) -> bytes | None:
        """Return the order of the queue's request in READY; a request that was put into the queue by another program is stored
        now.
        """
        token = request.meta.pop(TOKEN, None)
        with contextlib.suppress(TypeError, ValueError):  # none, or not ours
            return bytes.fromhex(token)
        try:
            member = self.encode(request)
        except Unserializable as exc:
            self._keep(request, str(exc))
            return None
        self._adopted.add(order := member[:_ORDER_BYTES])
        self._frontier.add_request(NewRequest(NO_FILTER, "0", member))
        return order

    def applied(self, batch: Batch, reply: Reply) -> None:
        """Push stored requests, and sort leased ones."""
        duplicates = set(reply.duplicates)
        for place, new in enumerate(batch.requests):
            order = new.payload[:_ORDER_BYTES]
            if order in self._adopted:
                self._adopted.discard(order)
            elif place not in duplicates:
                self._push(order, new.payload[_ORDER_BYTES:])
        held = len(self._claimed)
        leases = {lease.order[:_ORDER_BYTES]: lease for lease in self._frontier.take_all()}
        for claim in batch.claims:
            request = self._chosen.pop(order := bytes.fromhex(claim), None)
            lease = leases.pop(order, None)
            if lease is not None and request is not None:
                self._claimed.append(lease._replace(data=request))  # type: ignore[arg-type]  # for `decode`
        self._claimed.extend(leases.values())
        if batch.claims:
            self._fruitless = len(self._claimed) == held
        if reply.ready or self._claimed:
            self._frontier.listeners.work()

    def _push(self, order: bytes, payload: bytes) -> None:
        def push() -> None:
            request = self._codec.decode(payload)
            request.meta[TOKEN] = order.hex()
            self._queue.push(request)

        self._call("push", push)

    def _call(self, name: str, method: Callable[[], Any]) -> Any:
        """Return the result of the user's method, or None when it raises: READY has what it may have lost."""
        try:
            return method()
        except Exception as exc:
            if name not in self._failed:
                self._failed.add(name)
                logger.error(
                    "%s of %s failed (logged once); what it does not give back is taken in the order in which it was stored: %s",
                    name,
                    type(self._queue).__qualname__,
                    exc,
                    exc_info=not isinstance(exc, redis.RedisError),
                )
            return None

    def fenced(self) -> None:
        """Forget all leases."""
        self._claimed.clear()
        self._chosen.clear()

    def release_unstarted(self) -> None:
        """Give back leased requests that were not started, and chosen ones to the queue."""
        for lease in self._claimed:
            self._frontier.release(lease.id)
            self._give_back(lease.order[:_ORDER_BYTES], lease.data)
        for order, request in self._chosen.items():
            self._give_back(order, request)
        self._claimed.clear()
        self._chosen.clear()

    def _give_back(self, order: bytes, data: Any) -> None:
        # A push that failed may have waited long for its Redis, and the time for closing is short.
        if not isinstance(data, bytes) and "push" not in self._failed:
            data.meta[TOKEN] = order.hex()
            self._call("push", lambda: self._queue.push(data))


OUTAGES = (redis.ConnectionError, redis.TimeoutError, redis.OutOfMemoryError, redis.ReadOnlyError, ClusterDownError)
"""Errors that end with time, or when an operator mends Redis: a filter that could not be called is called again then."""


class CustomDupeFilter:
    """Asks `dupefilter`; its notes go through `server`, and name requests by `fingerprint`."""

    def __init__(self, dupefilter: Any, server: redis.Redis, frontier: Frontier, fingerprint: Callable[[Request], bytes]) -> None:
        self._dupefilter = dupefilter
        self._server = server
        self._frontier = frontier
        self._fingerprint = fingerprint
        self._forget: list[bytes] = []
        self._pausing = self._away = False
        self._failed: set[bytes] = set()
        self._unanswered: set[bytes] = set()  # the filter was asked, and its answer may have been lost
        self._rescued: set[bytes] = set()  # sent although the filter has them as seen; most of their notes are gone by now

    def check(self, request: Request) -> bytes | None:
        """Return None where the filter knows the request; else its fingerprint for the exchange, under which it is noted.

        Raises Redis's errors; after one of OUTAGES it shall be called again. A request that is not stored after all stays noted,
        for the process that finds it again after this one.
        """
        if self._pausing:  # each try may take as long as the client waits
            raise redis.ConnectionError("not asked again yet")
        fingerprint = self._fingerprint(request)
        outcome = b"noted"
        try:
            outcome = self._note(fingerprint)
            is_seen = self._ask(request, fingerprint)
        except OUTAGES as exc:
            if not self._away:
                logger.warning("%s cannot be asked, what is found waits: %s", type(self._dupefilter).__qualname__, exc)
            self._pausing = self._away = True
            raise
        except Exception as exc:  # the user's own
            return self._undecided(fingerprint, outcome, exc)
        self._away = False
        if not is_seen:
            self._unanswered.discard(fingerprint)
            return NO_FILTER if outcome == b"busy" else fingerprint
        if fingerprint in self._unanswered:  # by this process alone, as far as we know
            self._unanswered.discard(fingerprint)
            return fingerprint
        if outcome == b"again" and fingerprint not in self._rescued:
            self._rescued.add(fingerprint)
            return fingerprint
        if outcome == b"noted":
            self._forget.append(fingerprint)
        return None

    def _ask(self, request: Request, fingerprint: bytes) -> bool:
        try:
            return bool(self._dupefilter.request_seen(request))
        except OUTAGES:
            self._unanswered.add(fingerprint)
            raise

    def _undecided(self, fingerprint: bytes, outcome: bytes, exc: Exception) -> bytes | None:
        """Return the outcome of a filter that failed: an undecided request is stored once by each process, or a link back would
        be crawled for ever.
        """
        if not self._failed:
            name = type(self._dupefilter).__qualname__
            logger.error("%s failed (logged once); what it does not decide is crawled once", name, exc_info=exc)
        if fingerprint in self._failed:
            return None
        self._failed.add(fingerprint)
        return NO_FILTER if outcome == b"busy" else fingerprint

    def resume(self) -> None:
        """Let the filter be asked again."""
        self._pausing = False

    def fenced(self) -> None:
        """Note that Redis may have lost notes of requests that are written again: they are stored without notes."""
        self._rescued.clear()
        entries = self._frontier.outbox.entries
        for place, (kind, entry, size) in enumerate(entries):
            if kind == "requests":
                entries[place] = (kind, entry._replace(fingerprint=NO_FILTER), size)

    def leave(self) -> None:
        """Remove the notes of duplicates. Raises RedisError."""
        if self._forget:
            self._note(b"")

    def _note(self, fingerprint: bytes) -> bytes:
        args = {"owner": self._frontier.owner, "fingerprint": fingerprint, "forget": self._forget}
        outcome: bytes = script("note")(self._server, self._frontier.config.keys, args)
        self._forget.clear()
        return outcome
