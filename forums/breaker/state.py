"""Breakers of sites with a file: when they are probed for the first time, and again; opened at once after a page that hung or
killed its crawler, since the next crawler would fail on it, too. And the drift of a site's pages: fewer rows, or more empty
fields, than before.

Pages are compared in lots of `LOT`. The baseline is the median of the last `KNOWN` normal lots, so that single outliers change
nothing; nothing is judged before `LEARNED` lots. A field has drifted when it is empty much more often than the baseline in two
consecutive lots, and has recovered when one lot is near the baseline: two thresholds, so that a share between them changes
nothing. A drift that lasts for `ACCEPTED` lots becomes the new baseline. The state is in Redis, updated from the stats that all
crawlers send with their exchanges.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from statistics import median

import msgspec
import redis

from forum_reader.definition.site import BreakerOptions
from forum_reader.page.soft_block import BlockVerdict, Cause
from forums.sites import SiteError, load_site
from forums.state.keys import ForumFleetKeys
from forums.state.site_faults import Drift, Kind, Totals, drift_sentence, drifts, read_drift
from redis_components.admin.inspector import CrawlRecords
from redis_components.connection import connect
from redis_components.politeness.limits import retry_after_s
from redis_components.server.scripts import script
from redis_components.server.untrusted_values import as_bytes, as_text
from workers.breaker import state
from workers.breaker.state import pause_of
from workers.fleet.sizes import declared_fleet
from workers.process.page_at_work import PageAtWork
from workers.state.holds import Breaker

FILE_PROBE_S = 3.0
"""Interval of checks of a missing or invalid site file: no request is sent, and the operator waits for the check."""


def open_breaker(
    client: redis.Redis, site: str, verdict: BlockVerdict, options: BreakerOptions, *, url: str, kind: str, by: str
) -> bool:
    """Hold `site` because of `verdict`; return False if it is open already, or given up. Idempotent."""
    return state.open_breaker(
        client,
        site,
        verdict,
        options,
        url=url,
        kind=kind,
        by=by,
        asked_s=retry_after_s(verdict.retry_after, verdict.date) or 0.0,
        pause_s=FILE_PROBE_S if verdict.cause is Cause.SITE_FILE else None,
        again=verdict.cause is not Cause.SITE_FILE,
    )


def is_given_up(known: Breaker | None) -> bool:
    """Return True if an operator closed the breaker although the site's file was missing or invalid."""
    return known is not None and not known.is_open and known.cause == Cause.SITE_FILE


def after_probe(breaker: Breaker, found: str | None, options: BreakerOptions, now: float, luck: float) -> Breaker:
    """Return the breaker after a probe that `found` a fault, or None: a page of the site."""
    if found is None:
        return msgspec.structs.replace(
            breaker,
            good=breaker.good + 1,
            probes=breaker.probes + 1,
            last_probe="a page of the site",
            next_probe_at=now + min(options.probe_s, 5.0) * (0.75 + 0.5 * luck),  # soon, to decide if the site is well
        )
    step = breaker.step + 1
    pause = pause_of(step, options, luck)
    return msgspec.structs.replace(
        breaker, good=0, step=step, probes=breaker.probes + 1, last_probe=found, next_probe_at=now + pause
    )


def open_for_page(page: PageAtWork, what: str, by: str = "supervisor") -> None:
    """Open the breaker of the page's site; `what` happened to the process. Does nothing if the site file disables the breaker.
    Raises redis.RedisError.
    """
    try:
        options = load_site(page.site).breaker
    except SiteError:  # its file is wrong or missing: its queue is held for that reason
        options = BreakerOptions()
    if options.enabled:
        found = BlockVerdict(cause=Cause.HUNG, reason=f"a crawler {what}")
        open_breaker(connect(), page.site, found, options, url=page.url, kind=page.kind, by=by)


LOT = 20  # pages
KNOWN = 20  # lots remembered
LEARNED = 3  # lots before anything is judged
ACCEPTED = 50  # lots of a drift until it becomes the baseline
WORSE, WELL = 0.5, 0.2  # share of empty rows above the baseline: drifted, and recovered
POOR, ENOUGH = 0.25, 0.6  # rows per page as a part of the baseline: drifted, and recovered
LEAST_ROWS = 10  # rows in a lot before the share of empty fields counts
ROWS = "rows"
"""Name of the figure "rows per page". Other figures are shares of empty rows, by field."""


def observe(drift: Drift, totals: Totals) -> Drift:
    """Return the state after these totals. Counters that went back (a new Redis) begin a new lot."""
    pages = totals.pages - drift.counted.pages
    if pages < 0:
        return msgspec.structs.replace(drift, counted=totals)
    if pages < LOT:
        return drift
    lot = _figures(drift.counted, totals)
    normal = baseline(drift)
    suspicious, drifted = _judge(drift, lot, normal)
    accepted = [name for name, lots in suspicious.items() if lots >= ACCEPTED]
    # Suspicious figures stay out of the baseline; a figure that was suspicious for long is learnt from the beginning.
    sane = {name: value for name, value in lot.items() if name not in suspicious or name in accepted}
    lots = tuple({name: value for name, value in one.items() if name not in accepted} for one in drift.lots)
    return Drift(
        counted=totals,
        lots=(*lots, sane)[-KNOWN:],
        suspicious={name: n for name, n in suspicious.items() if name not in accepted},
        drifted={name: figures for name, figures in drifted.items() if name not in accepted},
    )


def baseline(drift: Drift) -> dict[str, float]:
    """Return the baseline by figure, without figures of fewer than `LEARNED` lots."""
    known: dict[str, list[float]] = {}
    for lot in drift.lots:
        for name, value in lot.items():
            known.setdefault(name, []).append(value)
    return {name: median(values) for name, values in known.items() if len(values) >= LEARNED}


def broken(drift: Drift, required: tuple[str, ...]) -> str | None:
    """Return the reason if the pages have become useless: no rows, or a required field that is always empty; else None."""
    for name in required:
        value, usual = drift.drifted.get(name, (0.5, 1.0))
        if (value == 0.0) if name == ROWS else (value == 1.0 and usual <= WORSE):
            return drift_sentence(name, value, usual)
    return None


def forgiven(drift: Drift) -> Drift:
    """Return the state without drifts, after the site was found well."""
    return msgspec.structs.replace(drift, suspicious={}, drifted={})


def _figures(before: Totals, now: Totals) -> dict[str, float]:
    pages, rows = now.pages - before.pages, now.rows - before.rows
    figures = {ROWS: rows / pages}
    if rows >= LEAST_ROWS:
        for name in {*now.empty, *before.empty}:
            figures[name] = min(1.0, max(0, now.empty.get(name, 0) - before.empty.get(name, 0)) / rows)
    return figures


def _judge(
    drift: Drift, lot: Mapping[str, float], normal: Mapping[str, float]
) -> tuple[dict[str, int], dict[str, tuple[float, float]]]:
    """Return the number of consecutive worse lots by figure, and the drifts, after this lot."""
    suspicious, drifted = dict(drift.suspicious), dict(drift.drifted)
    for name, value in lot.items():
        usual = drifted[name][1] if name in drifted else normal.get(name)  # the baseline before the drift
        if usual is None:
            continue
        if _is_worse(name, value, usual):
            suspicious[name] = suspicious.get(name, 0) + 1
        elif name not in drifted or _is_well(name, value, usual):
            suspicious.pop(name, None)
            drifted.pop(name, None)
        if suspicious.get(name, 0) >= 2 or (name in drifted and name in suspicious):
            drifted[name] = (value, usual)
    return suspicious, drifted


def _is_worse(name: str, value: float, usual: float) -> bool:
    return value < POOR * usual if name == ROWS else value >= usual + WORSE or (value == 1.0 and usual < 1.0 - WELL)


def _is_well(name: str, value: float, usual: float) -> bool:
    return value >= ENOUGH * usual if name == ROWS else value <= usual + WELL


STATS = "sites/"
"""Prefix of the crawlers' stats of sites: `sites/<site>/<kind>/pages`, `…/rows`, `…/empty/<field>`."""


def look_for_drift(client: redis.Redis, sites: Collection[str], required: Mapping[str, tuple[str, ...]]) -> dict[Kind, str]:
    """Update the state from the counters since the last call; return the kinds of page that became useless, with the reasons."""
    key = ForumFleetKeys().drift()
    raw = {as_text(name): as_bytes(text) for name, text in client.hgetall(key).items()}
    found = {}
    for (site, kind), totals in counted(_stats(client)).items():
        if site not in sites:
            continue
        name = f"{site}/{kind}"
        before = read_drift(raw.get(name, b""))
        after = observe(before, totals)
        if after is before:
            continue
        args = {"field": name, "expected": raw.get(name, b""), "value": msgspec.json.encode(after)}
        if script("swap")(client, {"notes": key}, args) and (reason := broken(after, required.get(kind, ()))):
            found[site, kind] = reason
    if stale := [name for name in raw if name.rpartition("/")[0] not in sites]:
        client.hdel(key, *stale)
    return found


def forgive(client: redis.Redis, site: str, *, forget: bool = False) -> None:
    """Clear the drifts of a site that is well. `forget`: clear the baseline, too, and learn it from the present pages."""
    key = ForumFleetKeys().drift()
    for (name, kind), drift in drifts(client).items():
        if name != site:
            continue
        after = Drift(counted=drift.counted) if forget else forgiven(drift)
        client.hset(key, f"{name}/{kind}", msgspec.json.encode(after))


def counted(stats: Iterable[Mapping[str, str]]) -> dict[Kind, Totals]:
    """Sum the stats of all crawlers by site and kind of page; values that are not numbers are left out."""
    pages: dict[Kind, dict[str, int]] = {}
    for one in stats:
        for name, text in one.items():
            parts = name.split("/", 3)
            if len(parts) != 4 or f"{parts[0]}/" != STATS or not text.isdecimal() or len(text) > 18:
                continue
            figures = pages.setdefault((parts[1], parts[2]), {})
            figures[parts[3]] = figures.get(parts[3], 0) + int(text)
    return {
        kind: Totals(
            pages=figures.get("pages", 0),
            rows=figures.get("rows", 0),
            empty={name.removeprefix("empty/"): n for name, n in figures.items() if name.startswith("empty/")},
        )
        for kind, figures in pages.items()
    }


def _stats(client: redis.Redis) -> list[dict[str, str]]:
    crawls = CrawlRecords(client).keys_of_all(declared_fleet(client))
    found = [client.hgetall(keys.stats_hash()) for keys in crawls.values()]
    return [{as_text(name): as_text(value) for name, value in one.items()} for one in found]
