"""A dupefilter in Redis from outside of the exchange: asking it, removing from it, emptying it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import redis

from redis_components.errors import ConfigError
from redis_components.server.scripts import script

from .kinds import Filter, block_rate, misfit, native_rate

SWEEP = 1000
"""Keys removed in one call: Redis is not held for longer than a millisecond or two."""


def _ask(client: redis.Redis, operation: str, key: str, filter: Filter, entries: Sequence[bytes]) -> list[Any]:
    args = {"filter": msgspec.msgpack.encode(filter.options()), "entries": entries}
    answers: list[Any]
    form, *answers = script(operation)(client, {"seen": key}, args)
    if form:
        raise misfit(key, form.decode(), filter.form)
    return answers


def seen(client: redis.Redis, key: str, filter: Filter, entries: Sequence[bytes]) -> list[bool]:
    """Return for each entry True if it was seen before, and mark all as seen. Not for a plain set, which is one SADD.

    Raises ConfigError when another dupefilter is at `key`.
    """
    return [answer == 1 for answer in _ask(client, "dupefilter_seen", key, filter, entries)]


def forget(client: redis.Redis, key: str, filter: Filter, entries: Sequence[bytes]) -> list[bool]:
    """Remove entries; whether each was known.

    Raises ConfigError when another dupefilter is at `key`, or a Bloom filter holds one of them; the others are removed.
    """
    answers = _ask(client, "dupefilter_forget", key, filter, entries)
    if b"kept" in answers:
        raise ConfigError(
            f"{key}: a Bloom filter cannot forget single requests; send them with dont_filter, or use another DUPEFILTER_CLASS"
        )
    return [answer == b"forgotten" for answer in answers]


def clear(client: redis.Redis, key: str) -> None:
    """Empty the filter of any kind at `key`. It counts as empty with the first of the calls that this takes."""
    while script("dupefilter_clear")(client, {"seen": key}, {"most": SWEEP}):
        pass


def begin_to_clear(pipe: redis.client.Pipeline, key: str) -> None:
    """Add the first of the calls of `clear` to a transaction."""
    empty = script("dupefilter_clear")
    pipe.execute_command("EVAL", empty.source, *empty.operands({"seen": key}, {"most": SWEEP}))  # type: ignore[no-untyped-call]


def false_positive_rate(form: str, layers: str) -> float:
    """Return the estimated share of new requests that a Bloom filter takes for seen now, from the fields of its hash.

    0.0 for one without layers, or with fields that are not ours.
    """
    passed = 1.0
    for record in filter(None, layers.split(",")):
        try:
            _, entries, hashes, blocks, capacity = map(int, record.split(":"))
        except ValueError:
            return 0.0
        if hashes:
            rate = block_rate(entries / max(blocks, 1), hashes)
        else:
            promised = re.search(r"false_positives=(\S+)", form)
            rate = native_rate(float(promised[1]), capacity, entries) if promised else 0.0
        passed *= 1 - rate
    return 1 - passed
