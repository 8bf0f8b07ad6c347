"""Spoils one key of a fleet after the other, and says what each part of the fleet made of it: one line of JSON for each case.

A separate process (`python -m tests.attacks.spoiling`), whose Redis, data folder and sites are named by its environment. `make
test` spoils each key in one turn, `make test-all` in three, so that each field has more kinds of garbage, and by keys of more
other types.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import sys
import time
import traceback
from collections.abc import Iterator
from typing import Any

import redis

from cli.main import main as trawl
from forums.state.keys import ForumCrawlKeys, ForumFleetKeys, ForumState, ForumStates, Ledger
from monitoring.metrics.exposition import text_of
from monitoring.metrics.fleet import METRICS
from monitoring.pages.views import Reading, overview
from monitoring.source import Source
from redis_components.connection import connect
from redis_components.embedded import redis_url
from redis_components.keys import CrawlKeys
from workers.state.holds import Breaker, Breakers, BreakerState
from workers.state.nodes import NodeRecord, Nodes
from workers.state.registry import CrawlerRecord, CrawlerState, Registry

FLEET, LISTS = ForumFleetKeys(), CrawlKeys.for_spider("forum_list")
FORUMS = ForumCrawlKeys(LISTS)
HASHES = {
    name: getattr(FLEET, name)()
    for name in (
        *("desired", "fences", "crawlers", "nodes", "drained_nodes", "roll", "autoscale", "holds", "breakers", "database"),
        *("wrong_sites", "delays", "beat_runs", "beat_begun", "schedule", "budgets", "orders"),
        "crawls",
    )
} | {
    f"forum_list {name}": getattr(LISTS, name)()
    for name in (
        "counters",
        "holds",
        "parked",
        "pending",
        "seeded",
        "stats_hash",
        "threads",
    )
}
HASHES |= {f"forum_list {name}": getattr(FORUMS, name)() for name in ("forum_states", "forum_dues", "marks")}
HASHES |= {"spent": FLEET.spent("good")}
LISTS_OF = {"errors": FLEET.errors(), "runs": FLEET.runs()}
STRINGS = {
    "slot": FLEET.slot("forum_detail", 0),
    "launch": FLEET.launch("forum_detail", 0),
    "beat_leader": FLEET.beat_leader(),
    "probing": FLEET.probing(),
}
FIELDS: tuple[bytes, ...] = (
    *(b"forum_detail", b"forum_detail/0", b"forum_detail/hand-1", b"beat", b"store_items", b"evil/1", b"roll", b"site:evil"),
    *(b"breaker:evil", b"slot:forum_detail/0", b"evil@host", b"scan|300", b"order", b"leased", b"known", b"evil"),
    *(b"downloader/response_count", b"\xff\xfe\x00", b"", b"\x1b[2J"),
)
GARBAGE: dict[str, bytes] = {
    "text": b"abc",
    "negative": b"-1",
    "fraction": b"0.5",
    "inf": b"inf",
    "nan": b"nan",
    "exponent": b"1e999",
    "beyond a double": b"99999999999999999",
    "400 digits": b"9" * 400,
    "5000 digits": b"9" * 5000,
    "other digits": "²".encode(),
    "binary": b"\xff\xfe\x00\x80",
    "deep": b"[" * 20_000,
    "huge": b"x" * 200_000,
    "empty object": b"{}",
    "null": b"null",
    "late": b'{"beat_at":1e300,"spider":"forum_detail","number":0,"state":"running","at":1e300,"word":"pause"}',
    "a later time": b'{"state":"open","cause":"x","reason":"y","since":1e300}',
    "odd round": b"99999999999999999999|5|sent",
    "a record of another": b'{"spider":"forum_list","number":0,"state":"running","token":1,"beat_at":4000000000}',
    "escapes": b"\x1b]0;PWNED\x07",
}
TURNS = 1 if os.environ.get("SHORT_TESTS") else 3
OTHER_TYPES = ("string", "list", "set", "zset", "hash", "stream")


class Heard(logging.Handler):
    """What beat has logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def furnish(client: redis.Redis) -> None:
    """A fleet of two services whose nodes have room, with something good under most keys."""
    client.flushall()
    registry = Registry(client)
    registry.set_desired("forum_list", 1)
    registry.note(CrawlerRecord(spider="forum_list", pid=7, state=CrawlerState.RUNNING))
    _hear(client)
    registry.report_error("good", "an error of before")
    Breakers(client).put(
        "good", Breaker(state=BreakerState.CLOSED, cause="busy", reason="good", since=1.0, closed_at=time.time())
    )
    Ledger(client).store_budgets({"good": 100.0})
    states = ForumStates(client)
    states.write({"good/1": ForumState(name="Innocent")})
    states.store_dues({"good/1": time.time()}, time.time(), whole=True)


def _hear(client: redis.Redis) -> None:
    """Have the good node heard now: one that is silent for 6 s, as long as a busy machine may take for a case, gets no launch."""
    Nodes(client).beat(NodeRecord(name="good@host", services=("forum_list", "forum_detail"), capacity=8))


def spoil(client: redis.Redis, kind: str, key: str, how: str) -> None:
    """Put garbage there, or a key of another type. `turn n`: each field has garbage of another kind than in the other turns."""
    if how in OTHER_TYPES:
        client.delete(key)
        {
            "string": lambda: client.set(key, "garbage"),
            "list": lambda: client.rpush(key, "garbage"),
            "set": lambda: client.sadd(key, "garbage"),
            "zset": lambda: client.zadd(key, {"garbage": 1}),
            "hash": lambda: client.hset(key, "garbage", "garbage"),
            "stream": lambda: client.xadd(key, {"garbage": "garbage"}),
        }[how]()
    elif kind == "hash":
        values, turn = list(GARBAGE.values()), int(how.removeprefix("turn "))
        client.hset(key, mapping={field: values[(at * 3 + turn) % len(values)] for at, field in enumerate(FIELDS)})
    elif kind == "list":
        client.lpush(key, *GARBAGE.values())
    else:
        client.set(key, GARBAGE[how])


def cases() -> Iterator[tuple[str, str, str]]:
    """Kind and key, and how it is spoilt."""
    for key in HASHES.values():
        for how in (*(f"turn {n}" for n in range(TURNS)), *(("list",) if TURNS == 1 else ("string", "list"))):
            yield "hash", key, how
    for key in LISTS_OF.values():
        yield from (("list", key, "garbage"), ("list", key, "hash"))
    for key in STRINGS.values():
        for how in ("text", "binary", "hash") if TURNS == 1 else ("text", "odd round", "huge", "binary", "hash", "zset"):
            yield "string", key, how


def reconciled() -> list[str]:
    """What `reconcile_fleet` does."""
    from tasks.fleet import reconcile_fleet

    with contextlib.suppress(redis.ResponseError):  # the key of nodes is of another type
        _hear(connect(redis_url()))
    done: list[str] = reconcile_fleet()
    return done


def status(*arguments: str) -> tuple[int, str, str]:
    """Exit code, output and complaints of a command."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = trawl(arguments)
    return code, out.getvalue(), err.getvalue()


def exported() -> dict[str, Any]:
    """What the exporter reads and shows."""
    source = Source(redis_url(), {"forum_list": 1, "forum_detail": 1})
    reading = source.look()
    samples = [line.partition("{")[0].split()[0] for line in text_of(reading).decode().splitlines() if not line.startswith("#")]
    return {
        "failure": reading.failure,
        "foreign": [str(one) for one in reading.foreign],
        "unreadable": dict(reading.unreadable),
        "page": len(overview(Reading(client=source.client, source=source.name, view=reading))),
        "names": len(set(samples)),
        "of": len(METRICS),
        "crawls": [one.name for one in reading.services],
    }


def beat() -> dict[str, Any]:
    """One tick of a beat of its own."""
    from tasks.app import app
    from tasks.beat.leader import LeaderScheduler
    from tasks.beat.leader import logger as beat_logger

    heard = Heard()
    beat_logger.addHandler(heard)
    try:
        app.loader.import_default_modules()  # as the program beat does
        scheduler = LeaderScheduler(app=app)
        scheduler.tick()
        sent = sorted(name for name, last in scheduler._rounds.items() if last.state == "sent")
        scheduler.close()
    finally:
        beat_logger.removeHandler(heard)
    return {"sent": sent, "said": heard.lines}


def outcome(client: redis.Redis) -> dict[str, Any]:
    """What each part makes of what is there now."""
    parts = {"exporter": exported, "status": lambda: status("status", "--json"), "screen": lambda: status("status")}
    parts |= {"forums": lambda: status("forums"), "beat": beat, "reconcile": reconciled}
    said: dict[str, Any] = {}
    for name, act in parts.items():
        try:
            said[name] = act()
        except Exception:
            said[name] = {"raised": traceback.format_exc()[-1500:]}
    return said


def main() -> None:
    """All cases, one line each."""
    client = connect(redis_url())
    names = {key: name for keys in (HASHES, LISTS_OF, STRINGS) for name, key in keys.items()}
    furnish(client)
    outcome(client)  # imports take seconds on a busy machine, and a node that is silent for 6 s gets no launch
    for kind, key, how in cases():
        furnish(client)
        spoil(client, kind, key, how)
        said = {"case": f"{names[key]}: {how}", "key": key, "type": how in OTHER_TYPES, **outcome(client)}
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
