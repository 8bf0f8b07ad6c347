"""Validators of pages (`ETag`, `Last-Modified`), and digests of their bodies.

Bounded in Redis: a number of pages of a crawl, in two generations; a page not asked for while the other half was filled is
forgotten.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec
import redis

from redis_components.keys import CrawlKeys
from redis_components.server.scripts import script

LONGEST = 256
"""Characters of a validator that is kept; a longer one is a site's mistake."""


class Validators(msgspec.Struct, frozen=True, array_like=True):
    """Of one page. "" is none."""

    etag: str = ""
    modified: str = ""
    digest: bytes = b""
    """Of the body: a site without validators may send the same page again."""

    @classmethod
    def of(cls, etag: str, modified: str, body: bytes) -> Validators:
        """Return the validators of an answer; too long ones, and others than printable ASCII, are left out."""
        return cls(_kept(etag), _kept(modified), hashlib.blake2b(body, digest_size=12).digest())


def _kept(text: str) -> str:
    return text if len(text) <= LONGEST and text.isascii() and text.isprintable() else ""


def name_of(url: str, tag: str) -> bytes:
    """Return the name under which the validators of a page are kept; `tag` differs where the page would be read otherwise."""
    return hashlib.blake2b(f"{tag}\n{url}".encode("utf-8", "surrogatepass"), digest_size=12).digest()


class ValidatorStore:
    """Its methods block, and raise `redis.RedisError`."""

    def __init__(self, client: redis.Redis, keys: CrawlKeys, most: int) -> None:
        self._client = client
        self._keys = keys
        self._most = most

    def look_up(self, name: bytes) -> Validators | None:
        """Return the validators of a page; None also for unreadable ones."""
        for key in (self._keys.validators(), self._keys.older_validators()):
            if (value := self._client.hget(key, name)) is not None:
                try:
                    return msgspec.msgpack.decode(value, type=Validators)  # type: ignore[arg-type]
                except msgspec.MsgspecError:
                    return None
        return None

    def store(self, found: Mapping[bytes, Validators]) -> None:
        """Store the validators of pages that are settled: all that was found on them is stored."""
        entries = [part for name, one in found.items() for part in (name, msgspec.msgpack.encode(one))]
        keys = {"newer": self._keys.validators(), "older": self._keys.older_validators()}
        script("validators_store")(self._client, keys, {"most": self._most, "entries": entries})

    def size(self) -> int:
        """Return the number of pages with validators."""
        return sum(int(self._client.hlen(key)) for key in (self._keys.validators(), self._keys.older_validators()))
