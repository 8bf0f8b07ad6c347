"""Small charts as SVG, made here: no script, no picture to fetch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from markupsafe import Markup, escape

from workers.overview.samples import History, Resolution, Sample, rates

WIDTH, HEIGHT = 360, 90
MOST_POINTS = 240
GAP_STEPS = 3  # a line is broken where so many samples are missing

Points = Sequence[tuple[float, float | None]]
"""Time (epoch s) and value; None: unknown."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """The time of a chart: `length_s` seconds up to `now`, with a sample every `step_s`."""

    now: float
    length_s: float
    step_s: float

    @property
    def start(self) -> float:
        return self.now - self.length_s


def chart(title: str, unit: str, points: Points, window: Window) -> Markup:
    """Draw a line from zero up, with its highest and last value in words, for those who do not see it, too."""
    seen = [(at, value) for at, value in points if at >= window.start and (value is None or math.isfinite(value))]
    values = [value for _, value in seen if value is not None]
    if not values:
        return Markup('<figure class="chart"><figcaption>{}</figcaption><p class="empty">no sample yet</p></figure>').format(
            title
        )
    top, last = _ceiling(max(values)), values[-1]
    last_at = next(at for at, value in reversed(seen) if value is not None)
    when = "now" if window.now - last_at <= GAP_STEPS * window.step_s else "last"  # sampling has stopped
    label = f"{when} {_figure(last)}, highest {_figure(max(values))} {unit}".strip()
    path = _path(_thinned(seen), top, window)
    return Markup(
        '<figure class="chart"><figcaption>{} <span class="faint">{}</span></figcaption>'
        '<svg viewBox="0 0 {} {}" role="img" aria-label="{}" preserveAspectRatio="none">'
        '<path class="grid" d="M0 .5H{}M0 {}H{}"/><path class="line" d="{}"/></svg>'
        '<p class="axis"><span>{}</span><span>{}</span><span>{}</span></p></figure>'
    ).format(
        *(title, label, WIDTH, HEIGHT, f"{title}: {label}", WIDTH, HEIGHT - 0.5, WIDTH, path),
        *(_moment(window.start, window), escape(f"0 to {_figure(top)}"), _moment(window.now, window)),
    )


def _path(points: Points, top: float, window: Window) -> str:
    parts, before = [], -math.inf
    gap_s = max(GAP_STEPS * window.step_s, GAP_STEPS * window.length_s / MOST_POINTS)
    for at, value in points:
        if value is None:
            before = -math.inf
            continue
        x = (at - window.start) / window.length_s * WIDTH
        y = HEIGHT - 1 - value / top * (HEIGHT - 2)
        # A point that stands alone is a short line: else nothing of it is seen.
        parts.append(f"{'L' if at - before <= gap_s else 'M'}{min(x, WIDTH):.1f} {y:.1f}{'' if at - before <= gap_s else 'h3'}")
        before = at
    return "".join(parts)


def _thinned(points: Points) -> Points:
    """Reduce points to at most `MOST_POINTS`: of several the highest, so that no peak is lost."""
    size = math.ceil(len(points) / MOST_POINTS)
    if size <= 1:
        return points
    groups = [points[start : start + size] for start in range(0, len(points), size)]
    return [max(group, key=lambda one: -1.0 if one[1] is None else one[1]) for group in groups]


def _ceiling(value: float) -> float:
    """Round up to the next of 1, 2, 5 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= value * (1 - 1e-9))


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def _moment(at: float, window: Window) -> str:
    form = "%H:%M" if window.length_s <= 43_200 else "%d %b %H:%M" if window.length_s <= 172_800 else "%d %b"
    return f"{datetime.fromtimestamp(at, UTC):{form}}"


Read = Callable[[Sample], float | None]
MINUTE_S, HOUR_S = 60.0, 3600.0
LEAST_STEPS = 15
"""Samples that a chart has room for. A fleet that is younger than the window would be a stroke at its edge."""


def fleet_charts(history: History, now: float, *, month: bool = False) -> list[Markup]:
    """Return the charts of posts stored, pages, backlog and crawlers over a day, or over 30 days."""
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
    """Return the charts of a site: stored posts, and the age of the last scan of its stalest board."""
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
    """Return the charts of memory and pages per second of a crawler's slot over a day."""
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
    """Return the posts and comments stored in a minute, over the last samples; None without two of the last minutes."""
    last = [one for one in history.day[-minutes - 1 :] if now - one.at <= (minutes + GAP_STEPS) * MINUTE_S]
    if last and now - last[-1].at > GAP_STEPS * MINUTE_S:
        return None  # sampling has stopped
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
