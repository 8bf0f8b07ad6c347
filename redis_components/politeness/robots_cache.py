"""The fleet's cache of robots.txt files: one process fetches each, once a day, and all obey it.

Bounded in Redis: MOST_ORIGINS files of MOST_BYTES in all (compressed); the oldest go first and are fetched again when needed.
"""

from __future__ import annotations

import zlib
from enum import StrEnum
from hashlib import sha1
from typing import NamedTuple

import redis

from redis_components.keys import CrawlKeys
from redis_components.server.scripts import script

LARGEST = 512 * 1024
"""Bytes of a file that are read. RFC 9309, 2.5, asks for at least 500 KiB; 8 MB of rules took 10 s of the reactor's time."""
KEEP_S = 24 * 3600
"""For how long a file holds (RFC 9309, 2.4)."""
FAILED_S = 5
"""For how long a site is left alone whose robots.txt could not be fetched; doubled each time, half an hour at most."""
CLAIM_S = 20
"""Seconds that a process may take to fetch a file, before another one tries."""
MOST_ORIGINS, MOST_BYTES = 20_000, 64 << 20
LONGEST_VALIDATOR = 1024
SLOWEST, FASTEST = 1e-5, 1e4
"""Requests per second that a file may ask for: from one a day to more than any crawler sends."""


class FileKind(StrEnum):
    """The kinds of answers to a request for robots.txt."""

    RULES = "rules"
    NONE = "none"
    """4xx: everything is allowed (RFC 9309, 2.3.1.3)."""
    UNREACHABLE = "unreachable"
    """5xx or 429: nothing is allowed for a time (RFC 9309, 2.3.1.4)."""


class RobotsFile(NamedTuple):
    """One file. `body` are the rules, at most LARGEST bytes; `rate` is the one that they ask for, in requests per second."""

    kind: FileKind
    body: bytes = b""
    etag: str = ""
    modified: str = ""
    rate: float | None = None

    @property
    def version(self) -> str:
        """Another one for other rules."""
        return sha1(self.kind.encode() + self.body, usedforsecurity=False).hexdigest()


class RobotsReply(NamedTuple):
    """The reply of Redis: `state` is `same`, `known`, `fetch` or `wait` (see `robots_ask.lua`)."""

    state: str
    seconds: float
    file: RobotsFile | None
    failures: int = 0
    """Consecutive answers with 5xx or 429."""


def readable(body: bytes) -> bytes:
    """Return the lines of a robots.txt that are read."""
    return body if len(body) <= LARGEST else body[:LARGEST].rpartition(b"\n")[0]


def rate_of(crawl_delay_s: float | None, requests: int = 0, seconds: int = 0) -> float | None:
    """Return the requests per second that a file allows: the slower one of `Crawl-delay` and `Request-rate` (a number of
    requests in a number of seconds); None where it has neither.
    """
    rates = []
    if crawl_delay_s is not None and crawl_delay_s > 0:
        rates.append(1 / crawl_delay_s)
    if requests > 0 and seconds > 0:
        rates.append(requests / seconds)
    return min(max(min(rates), SLOWEST), FASTEST) if rates else None


class RobotsCache:
    """Files in Redis. `claim` names this process. Its methods block, and raise `redis.RedisError`."""

    def __init__(self, client: redis.Redis, keys: CrawlKeys, claim: str) -> None:
        self._client = client
        self._keys = keys
        self._claim = claim

    def ask(self, origin: str, version: str = "") -> RobotsReply:
        """Return the stored file of `origin` (scheme, host and port); `version` is that of the file that the caller has."""
        args = {"version": version, "claim": self._claim, "claim_ms": CLAIM_S * 1000}
        state, ms, failures, *fields = script("robots_ask")(self._client, {"record": self._keys.robots_file(origin)}, args)
        return RobotsReply(state.decode(), int(ms) / 1000, _file(*fields), int(failures))

    def store(self, origin: str, file: RobotsFile, lane: str) -> RobotsReply:
        """Keep it for all, and let `lane` ("": none) obey its rate."""
        keys = self._keys
        args = {
            "origin": origin,
            "kind": file.kind.value,
            "body": zlib.compress(file.body),
            "version": file.version,
            "etag": file.etag if len(file.etag) <= LONGEST_VALIDATOR else "",
            "modified": file.modified if len(file.modified) <= LONGEST_VALIDATOR else "",
            "keep_ms": 1000 * (FAILED_S if file.kind is FileKind.UNREACHABLE else KEEP_S),
            "rate": "" if file.rate is None else repr(file.rate),
            "lane": lane,
            "most": MOST_ORIGINS,
            "most_bytes": MOST_BYTES,
        }
        names = script("robots_store").named(
            keys, record=keys.robots_file(origin), index=keys.robots(), bytes=keys.robots_bytes()
        )
        ms, failures = script("robots_store")(self._client, names, args)
        return RobotsReply("known", int(ms) / 1000, file, int(failures))

    def give_up(self, origin: str) -> None:
        """Give up a fetch without an answer: the next process that needs the file asks for it."""
        self._client.hdel(self._keys.robots_file(origin), "claim", "claim_until")


def _file(kind: bytes, _: bytes, body: bytes, etag: bytes, modified: bytes, rate: bytes) -> RobotsFile | None:
    """Return a stored file; None for a record in another form: a writer to Redis may write anything."""
    try:
        rules = zlib.decompressobj().decompress(body, LARGEST) if body else b""
        number = float(rate) if rate else None
        return RobotsFile(FileKind(kind.decode()), rules, etag.decode("latin-1"), modified.decode("latin-1"), number)
    except (ValueError, zlib.error):
        return None
