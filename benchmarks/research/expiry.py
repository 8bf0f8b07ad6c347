"""Expiry: memory of a dupefilter against pages fetched twice, by what keeps an entry (DUPEFILTER_RENEW) and by its bound.

The list is a record: when messages came in the threads of a public community of 42 active boards in 24 days
(benchmarks/support/posting.py), four times over, each a day later than the one before. Every two hours each board's list is
scanned, its ten threads with the newest messages, and the dupefilter is asked about each; the page of a thread that counts as
new is fetched. `still listed`: fetched again though the scan before had it on the list, too; `came back`: it had left the list
in between. Nothing waits: between two scans the filter's entries are made two hours older in Redis. The bytes are the most at
any time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha1

import redis

from benchmarks.support.posting import DAY, HOUR, RECORDED_DAYS, WORKLOADS
from benchmarks.support.report import Report
from redis_components.admin.health import memory_of
from redis_components.admin.inspector import snapshot
from redis_components.filters import Exact, Filter, Renew, Rolling, seen
from tests.support.dupefilters import made_older
from tests.support.owner import KEYS
from tests.support.redis_server import RedisServer

COPIES, LISTED, EVERY_S = 4, 10, 2 * HOUR
BEGIN, END = -10 * DAY, RECORDED_DAYS * DAY


def kinds(*, small: bool) -> dict[str, Filter]:
    """Return the compared filters."""
    bounds = (1000,) if small else (1000, 2000, 3000)
    ages = (4 * DAY,) if small else (2 * DAY, 4 * DAY, 8 * DAY)
    return {
        "no bound": Exact(),
        **{f"{bound:,} entries": Rolling(max_entries=bound) for bound in bounds},
        **{f"{age / DAY:g} days": Rolling(max_age_s=age) for age in ages},
    }


def run(*, small: bool) -> Report:
    """Replay the record once for each filter. The small form has one bound and one age, and the last two days."""
    report = Report(title="Expiry", method=" ".join((__doc__ or "").split("\n\n", 1)[1].split()))
    rows = []
    scans = list(recorded_scans(END - 2 * DAY if small else BEGIN))
    with RedisServer() as server, server.client() as client:
        for name, kind in kinds(small=small).items():
            for renew in Renew if isinstance(kind, Rolling) else (None,):
                chosen = kind if renew is None else replaced(kind, renew)
                client.flushall()
                rows.append([name, renew or "", *replay(client, chosen, scans)])
    head = ["bound", "DUPEFILTER_RENEW", "most entries", "KiB", "pages fetched", "twice", "still listed", "came back"]
    report.table(head, rows)
    return report


def replaced(kind: Filter, renew: Renew) -> Rolling:
    """Return the rolling filter with the other way to renew."""
    assert isinstance(kind, Rolling)
    return Rolling(max_entries=kind.max_entries, max_age_s=kind.max_age_s, renew=renew)


def recorded_scans(begin: float) -> Iterator[list[str]]:
    """Yield the threads on all lists at each scan."""
    record = next(one for one in WORKLOADS if one.name == "recorded")
    streams = record.changes(_AtZero(), RECORDED_DAYS)  # type: ignore[arg-type]
    boards = [(f"{copy}/{place}", copy * DAY, stream) for copy in range(COPIES) for place, stream in enumerate(streams)]
    latest: dict[str, dict[int, float]] = {name: {} for name, _, _ in boards}
    read = dict.fromkeys(latest, 0)
    for scan in range(int((END - BEGIN) / EVERY_S)):
        until, listed = BEGIN + (scan + 1) * EVERY_S, []
        for name, later, stream in boards:
            threads = stream.threads or ()
            while read[name] < len(stream.at) and stream.at[read[name]] + later < until:
                latest[name][threads[read[name]]] = stream.at[read[name]]
                read[name] += 1
            newest = sorted(latest[name], key=latest[name].__getitem__, reverse=True)[:LISTED]
            listed += [f"{name}/{thread}" for thread in newest]
        if until > begin:
            yield listed


class _AtZero:
    """Stands for the random start of a record: its beginning."""

    def uniform(self, low: float, _: float) -> float:
        """Return the lowest."""
        return low


def replay(client: redis.Redis, kind: Filter, scans: Sequence[Sequence[str]]) -> list[object]:
    """Ask the filter about each scan; return the columns of a row."""
    entries = bytes_ = pages = twice = still_listed = 0
    empty = memory_of(client).used
    fetched: set[str] = set()
    before: set[str] = set()
    for listed in scans:
        new = [not one for one in seen(client, KEYS.fingerprints(), kind, [kind.entry(fingerprint(name)) for name in listed])]
        asked = [name for name, is_new in zip(listed, new, strict=True) if is_new]
        pages += len(asked)
        twice += sum(name in fetched for name in asked)
        still_listed += sum(name in fetched and name in before for name in asked)
        fetched.update(asked)
        before = set(listed)
        entries = max(entries, snapshot(client, "s", KEYS).fingerprints)
        bytes_ = max(bytes_, memory_of(client).used - empty)
        made_older(client, EVERY_S)
    return [entries, bytes_ // 1024, pages, twice, still_listed, twice - still_listed]


def fingerprint(name: str) -> bytes:
    """Return as many bytes as Scrapy's fingerprints have."""
    return sha1(name.encode(), usedforsecurity=False).digest()
