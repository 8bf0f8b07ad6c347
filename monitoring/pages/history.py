"""The charts of each page, from the history that the fleet keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from markupsafe import Markup

from forums.overview.samples import History, Resolution, Sample, rates

from .charts import GAP_STEPS, Points, Window, chart

Read = Callable[[Sample], float | None]
MINUTE_S, HOUR_S = 60.0, 3600.0
LEAST_STEPS = 15
"""Samples that a chart has room for. A fleet that is younger than the window would be a stroke at its edge."""


def fleet_charts(history: History, now: float, *, month: bool = False) -> list[Markup]:
    """Posts stored, pages, backlog and crawlers over a day, or over 30 days."""
    samples, window = _window(history, now, month=month)
    stored, pages = (lambda one: one.stored), (lambda one: one.pages)
    return [
        chart("Posts and comments", "a minute", rates(_points(samples, stored), MINUTE_S), window),
        chart("Pages", "a second", rates(_points(samples, pages), 1.0), window),
        chart("Requests waiting", "", _points(samples, lambda one: one.waiting), window),
        chart("Items waiting", "", _points(samples, lambda one: one.items), window),
        chart("Dead letters", "", _points(samples, lambda one: one.dead), window),
        chart("Crawlers alive", "", _points(samples, lambda one: one.alive), window),
    ]


def site_charts(history: History, site: str, now: float, *, month: bool = False) -> list[Markup]:
    """What was stored of a site, and how old the last scan of its stalest board was."""
    samples, window = _window(history, now, month=month)

    def stored(one: Sample) -> float | None:
        return one.sites[site].stored if site in one.sites else None

    def stale(one: Sample) -> float | None:
        return one.sites[site].stale_s if site in one.sites else None

    return [
        chart("Posts and comments", "a minute", rates(_points(samples, stored), MINUTE_S), window),
        chart("Stalest board, last scanned", "s ago", _points(samples, stale), window),
    ]


def crawler_charts(history: History, name: str, now: float) -> list[Markup]:
    """Memory and pages per second of a crawler's slot over a day."""
    samples, window = _window(history, now, month=False)

    def memory(one: Sample) -> float | None:
        return one.crawlers[name].rss_mib if name in one.crawlers else None

    def pages(one: Sample) -> float | None:
        return one.crawlers[name].pages_per_s if name in one.crawlers else None

    return [
        chart("Memory", "MiB", _points(samples, memory), window),
        chart("Pages", "a second", _points(samples, pages), window),
    ]


def lately(history: History, now: float, minutes: int = 5) -> float | None:
    """Posts and comments stored in a minute, over the last samples; None where there are not two of the last minutes."""
    last = [one for one in history.day[-minutes - 1 :] if now - one.at <= (minutes + GAP_STEPS) * MINUTE_S]
    if last and now - last[-1].at > GAP_STEPS * MINUTE_S:
        return None  # nobody takes samples any more
    found = rates([(last[0].at, last[0].stored), (last[-1].at, last[-1].stored)], MINUTE_S) if len(last) > 1 else []
    return found[-1][1] if found else None


def _window(history: History, now: float, *, month: bool) -> tuple[Sequence[Sample], Window]:
    one = Resolution.HOUR if month else Resolution.MINUTE
    samples = history.month if month else history.day
    since_first = now - samples[0].at + one.step_s if samples else 0.0
    length_s = min(one.step_s * one.kept, max(since_first, LEAST_STEPS * one.step_s))
    return samples, Window(now=now, length_s=length_s, step_s=one.step_s)


def _points(samples: Sequence[Sample], read: Read) -> Points:
    return [(one.at, read(one)) for one in samples]
