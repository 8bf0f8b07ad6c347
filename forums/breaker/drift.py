"""Whether pages of a site still have what they used to have: rows, and fields that are not empty. Pure.

Pages are taken together in lots of `LOT`. What is normal is the median of the last `KNOWN` lots that were normal, so that a few
odd ones change nothing; before `LEARNED` of them nothing is judged. A field has drifted when two lots in a row have it empty much
more often than is normal, and is well again when one lot is near to it: two thresholds, so that a share between them changes
nothing. What stays as it is for `ACCEPTED` lots is the new normal.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

import msgspec

from forums.state.site_breakers import drift_sentence

LOT = 20  # pages
KNOWN = 20  # lots remembered
LEARNED = 3  # lots before anything is judged
ACCEPTED = 50  # lots of a drift after which it is what is normal
WORSE, WELL = 0.5, 0.2  # more of the rows have the field empty than normally: drifted, and well again
POOR, ENOUGH = 0.25, 0.6  # part of the normal rows per page: drifted, and well again
LEAST_ROWS = 10  # rows in a lot before the share of empty fields means something
ROWS = "rows"
"""Among the figures of a lot: rows per page. The others are shares of empty rows, by field."""


class Totals(msgspec.Struct, frozen=True):
    """What was counted of one kind of page of one site, ever."""

    pages: int = 0
    rows: int = 0
    empty: dict[str, int] = {}  # field -> rows in which it was empty


class Drift(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is remembered of one kind of page of one site."""

    counted: Totals = Totals()  # at the end of the last lot
    lots: tuple[dict[str, float], ...] = ()  # normal ones, the oldest first
    suspicious: dict[str, int] = {}  # figure -> lots in a row that were worse than normal
    drifted: dict[str, tuple[float, float]] = {}  # figure -> what it is, and what is normal


def observe(drift: Drift, totals: Totals) -> Drift:
    """What is known when so much has been counted. Counters that went back (a new Redis) begin a new lot."""
    pages = totals.pages - drift.counted.pages
    if pages < 0:
        return msgspec.structs.replace(drift, counted=totals)
    if pages < LOT:
        return drift
    lot = _figures(drift.counted, totals)
    normal = baseline(drift)
    suspicious, drifted = _judge(drift, lot, normal)
    accepted = [name for name, lots in suspicious.items() if lots >= ACCEPTED]
    # What is odd in a lot is left out of what is normal; what has been odd for long is the new normal, and is learnt afresh.
    sane = {name: value for name, value in lot.items() if name not in suspicious or name in accepted}
    lots = tuple({name: value for name, value in one.items() if name not in accepted} for one in drift.lots)
    return Drift(
        counted=totals,
        lots=(*lots, sane)[-KNOWN:],
        suspicious={name: n for name, n in suspicious.items() if name not in accepted},
        drifted={name: figures for name, figures in drifted.items() if name not in accepted},
    )


def baseline(drift: Drift) -> dict[str, float]:
    """What is normal, by figure; nothing for one that has not been seen often enough."""
    known: dict[str, list[float]] = {}
    for lot in drift.lots:
        for name, value in lot.items():
            known.setdefault(name, []).append(value)
    return {name: median(values) for name, values in known.items() if len(values) >= LEARNED}


def broken(drift: Drift, required: tuple[str, ...]) -> str | None:
    """Why nothing of use is read any more: a required figure is at its worst, no rows or a field that is always empty."""
    for name in required:
        value, usual = drift.drifted.get(name, (0.0, 1.0))
        if name == ROWS and name in drift.drifted and value == 0.0:
            return words(drift, name)
        if name != ROWS and value == 1.0 and usual <= WORSE:
            return words(drift, name)
    return None


def words(drift: Drift, name: str) -> str:
    """What has drifted, for people: `body is empty in 100 % of the rows, usually 0 %`."""
    return drift_sentence(name, *drift.drifted[name])


def forgiven(drift: Drift) -> Drift:
    """The same without what has drifted: it was seen to be well again."""
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
    """How many lots in a row each figure was worse, and what has drifted, after this lot."""
    suspicious, drifted = dict(drift.suspicious), dict(drift.drifted)
    for name, value in lot.items():
        usual = drifted[name][1] if name in drifted else normal.get(name)  # what was normal, however long ago
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
