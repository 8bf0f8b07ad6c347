"""The kinds of dupefilter as Redis sees them: their parameters, the form of a stored entry, and the options of the scripts. The
other half is `lua/lib/filter.lua` and its parts; `dupefilter` holds Scrapy's classes for them.

    PlainSet   a set of fingerprints, as scrapy-redis keeps it
    Exact      64 to 80 bits of each fingerprint, in small sets of integers
    Rolling    the same, and old entries expire
    Bloom      a few bits for each entry; a small part of the new requests counts as seen
    Window     the last entries exactly, older ones in a Bloom filter

A kind's `form` holds the parameters that decide how entries are stored. It is kept in Redis and compared, so that no process
reads entries in another form than they were written in.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha1
from typing import Any, ClassVar

from redis_components.errors import ConfigError

from .bloom_sizing import layer_plans

FEWEST_BITS, MOST_BITS = 64, 80
FEWEST_ENTRIES = 1000
SHORTEST_AGE_S = 1

_PARTS = struct.Struct(">Hq")
_ROOT = struct.Struct(">H")


def _entry(fingerprint: bytes, bits: int) -> bytes:
    # Bits of its SHA-1: a user's fingerprint may be any text, whose first bytes are those of many others.
    root, number = _PARTS.unpack_from(sha1(fingerprint, usedforsecurity=False).digest())
    return _ROOT.pack(root >> MOST_BITS - bits) + b"%d" % number


def _checked(setting: str, value: float, lowest: float, highest: float) -> None:
    if not lowest <= value <= highest:
        raise ConfigError(f"{setting} = {value} is out of range: from {lowest:g} to {highest:g}")


@dataclass(frozen=True, kw_only=True)
class Filter:
    """One kind of dupefilter with its parameters."""

    kind: ClassVar[str]
    forgets: ClassVar[bool] = False
    """True if entries expire: then no process may answer from what it remembers."""

    @property
    def form(self) -> str:
        """The content of the base key."""
        return self.kind

    def options(self) -> dict[str, Any] | None:
        """Return the options for `lua/lib/filter.lua`; None where it is not used."""
        return None

    def entry(self, fingerprint: bytes) -> bytes:
        """Return the entry for a fingerprint, in the form that the scripts take."""
        return fingerprint


@dataclass(frozen=True, kw_only=True)
class PlainSet(Filter):
    """Fingerprints as they are, in the set at the base key, where other tools can read them."""

    kind: ClassVar[str] = "set"


@dataclass(frozen=True, kw_only=True)
class Exact(Filter):
    """`bits` of each fingerprint. Two requests are taken for one with probability 2**-bits for each pair of them.

    64 of the bits are stored as an integer of 8 bytes; the others choose among 2**(bits - 64) buckets at the start.
    """

    kind: ClassVar[str] = "exact"
    bits: int = 72

    def __post_init__(self) -> None:
        _checked("DUPEFILTER_BITS", self.bits, FEWEST_BITS, MOST_BITS)

    @property
    def form(self) -> str:
        """The content of the base key."""
        return f"{self.kind} bits={self.bits}"

    def options(self) -> dict[str, Any] | None:
        """Return the options for `lua/lib/filter.lua`."""
        return {"kind": self.kind, "form": self.form, "roots": 1 << self.bits - FEWEST_BITS}

    def entry(self, fingerprint: bytes) -> bytes:
        """Return 2 bytes of root, then an integer of 64 bits in decimal, as Redis keeps it in a set."""
        return _entry(fingerprint, self.bits)


@dataclass(frozen=True, kw_only=True)
class Notes(Filter):
    """No filter: a class of the user's was asked already, and a request is stored if the note of that is still there."""

    kind: ClassVar[str] = "notes"

    def options(self) -> dict[str, Any] | None:
        """Return the options for `exchange.lua`."""
        return {"kind": self.kind}


class Renew(StrEnum):
    """The event that keeps an entry from expiring."""

    MET = "met"  # a request with this fingerprint: it is as good as new then
    HITS = "hits"  # the same, but each time for one generation more: the more often it was met, the longer it stays
    WRITTEN = "written"  # nothing: it expires some time after it was first seen


@dataclass(frozen=True, kw_only=True)
class Rolling(Exact):
    """Exact, in `generations`. A new one is begun when the newest has its share of `max_entries` or `max_age_s`, and
    the oldest is dropped then: at most that many entries and seconds are kept, and at least half of it (renewed when MET) or
    three quarters (else).
    """

    kind: ClassVar[str] = "rolling"
    forgets: ClassVar[bool] = True
    max_entries: int = 0
    """0: entries do not expire by number."""
    max_age_s: float = 0.0
    """0: entries do not expire by age."""
    renew: Renew = Renew.MET

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_entries:
            _checked("DUPEFILTER_MAX_ENTRIES", self.max_entries, FEWEST_ENTRIES, 1e12)
        if self.max_age_s:
            _checked("DUPEFILTER_MAX_AGE", self.max_age_s, SHORTEST_AGE_S, 1e9)
        if not self.max_entries and not self.max_age_s:
            raise ConfigError(
                f"a {self.kind} dupefilter needs a bound: set DUPEFILTER_MAX_ENTRIES (number) or DUPEFILTER_MAX_AGE (s), or both"
            )

    @property
    def generations(self) -> int:
        """More of them expire more evenly, and each is asked about each new request."""
        return 2 if self.renew is Renew.MET else 4

    def options(self) -> dict[str, Any] | None:
        """Return the options for `lua/lib/filter.lua`."""
        return {
            **(super().options() or {}),
            "generations": self.generations,
            "max_entries": self.max_entries,
            "max_age_ms": round(self.max_age_s * 1000),
            "renew": self.renew,
        }


@dataclass(frozen=True, kw_only=True)
class Bloom(Filter):
    """A scalable Bloom filter: layers, each twice as large as the one before and with less false positives, so that all of them
    together keep the promised rate. `capacity` entries fit into the first one. Uses RedisBloom where the server has it, if
    `native` is left on.
    """

    kind: ClassVar[str] = "bloom"
    false_positives: float = 1e-4
    """Part of the new requests that counts as seen and is never fetched."""
    capacity: int = 1_000_000
    native: bool = field(default=True)

    def __post_init__(self) -> None:
        _checked_bloom(self.false_positives, self.capacity)

    @property
    def form(self) -> str:
        """The content of the base key."""
        return f"{self.kind} false_positives={self.false_positives:g}"

    def options(self) -> dict[str, Any] | None:
        """Return the options for `lua/lib/filter.lua`."""
        bloom = _bloom_options(self.false_positives, self.capacity, self.native)
        return {"kind": self.kind, "form": self.form, **bloom}

    def entry(self, fingerprint: bytes) -> bytes:
        """Return 64 bits, from which `lua/lib/bloom.lua` chooses block and bits."""
        return sha1(fingerprint, usedforsecurity=False).digest()[:8]


@dataclass(frozen=True, kw_only=True)
class Window(Rolling):
    """Rolling, but a generation that drops out is moved into a Bloom filter. While all entries fit the window nothing is ever
    taken for seen that was not. Two generations, since nothing is lost when one drops out: half of the window is exact at least.
    """

    kind: ClassVar[str] = "window"
    forgets: ClassVar[bool] = False
    false_positives: float = 1e-4
    capacity: int = 1_000_000
    native: bool = field(default=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        _checked_bloom(self.false_positives, self.capacity)
        if self.renew is not Renew.MET:
            raise ConfigError(f"DUPEFILTER_RENEW = {self.renew.value!r}: in a window what is met again is always renewed ('met')")

    @property
    def generations(self) -> int:
        """Nothing is lost when one drops out."""
        return 2

    @property
    def form(self) -> str:
        """The content of the base key."""
        return f"{super().form} false_positives={self.false_positives:g}"

    def options(self) -> dict[str, Any] | None:
        """Return the options for `lua/lib/filter.lua`."""
        return {**(super().options() or {}), **_bloom_options(self.false_positives, self.capacity, self.native)}


def misfit(key: str, there: str, wanted: str) -> ConfigError:
    """Return the error for a key that holds another dupefilter than this process is set to."""
    return ConfigError(
        f"{key} holds a dupefilter of the form {there!r}, this process is set to {wanted!r}: give all processes the same"
        " DUPEFILTER_CLASS and parameters, or name another SCHEDULER_DUPEFILTER_KEY, or start empty with SCHEDULER_FLUSH_ON_START"
    )


def _checked_bloom(false_positives: float, capacity: int) -> None:
    _checked("DUPEFILTER_FALSE_POSITIVES", false_positives, 1e-9, 0.5)
    _checked("DUPEFILTER_CAPACITY", capacity, 1, 1e12)


def _bloom_options(false_positives: float, capacity: int, native: bool) -> dict[str, Any]:
    return {"layers": layer_plans(false_positives, capacity), "native": native, "rate": str(false_positives)}
