"""Small charts as SVG, made here: no script, no picture to fetch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from markupsafe import Markup, escape

from fleet_operations.overview.samples import History, Resolution, Sample, rates

WIDTH, HEIGHT, ALONE = 360, 90, 4
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


def chart(title: str, unit: str, points: Points, window: Window, *, running: str = "now") -> Markup:
    """Draw a line from zero up, with its highest and last value in words, for those who do not see it, too; `running` is the word
    for the last value while samples come.
    """
    seen = [(at, value) for at, value in points if at >= window.start and (value is None or math.isfinite(value))]
    values = [value for _, value in seen if value is not None]
    if not values:
        return Markup('<figure class="chart"><figcaption>{}</figcaption><p class="empty">no sample yet</p></figure>').format(
            title
        )
    top, last = _ceiling(max(values)), values[-1]
    last_at = next(at for at, value in reversed(seen) if value is not None)
    when = running if window.now - last_at <= GAP_STEPS * window.step_s else "last"  # sampling has stopped
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
        x = min(WIDTH, (at - window.start) / window.length_s * WIDTH)
        y = HEIGHT - 1 - value / top * (HEIGHT - 2)
        # A point that stands alone is a short line, to its left: else nothing of it is seen.
        parts.append(f"L{x:.1f} {y:.1f}" if at - before <= gap_s else f"M{x - ALONE:.1f} {y:.1f}h{ALONE}")
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
MINUTE_S = 60.0
LEAST_STEPS = 15
"""Samples that a chart has room for. A fleet that is younger than the window would be a stroke at its edge."""


class StoredRows:
    """Numbers of rows that were stored in each minute and hour, by an application that has a database; here none."""

    def read(self) -> None:
        """Add what was stored since the last reading."""

    def steps(self, step_s: int, now: float, site: str | None = None) -> list[tuple[float, float]]:  # noqa: ARG002
        """Return the end of each minute or hour since the first row, and how many were stored in it; the last one still runs."""
        return []


NO_ROWS = StoredRows()


def fleet_charts(history: History, now: float, rows: StoredRows = NO_ROWS, *, month: bool = False) -> list[Markup]:
    """Return the charts of posts stored, pages, backlog and crawlers over a day, or over 30 days."""
    samples, window = _window(history, now, rows, month=month)
    return [
        _stored_chart(samples, lambda one: one.stored, rows, window),
        chart("Pages", "a second", rates(_points(samples, lambda one: one.pages), 1.0), window),
        chart("Requests waiting", "", _points(samples, lambda one: one.waiting), window),
        chart("Items waiting", "", _points(samples, lambda one: one.items), window),
        chart("Dead letters", "", _points(samples, lambda one: one.dead), window),
        chart("Crawlers alive", "", _points(samples, lambda one: one.alive), window),
    ]


def site_charts(history: History, site: str, now: float, rows: StoredRows = NO_ROWS, *, month: bool = False) -> list[Markup]:
    """Return the charts of a site: stored posts, and the age of the last scan of its stalest board."""
    samples, window = _window(history, now, rows, month=month)

    def read(field: str) -> Read:
        return lambda one: getattr(one.sites[site], field) if site in one.sites else None

    return [
        _stored_chart(samples, read("stored"), rows, window, site),
        chart("Stalest board, last scanned", "s ago", _points(samples, read("stale_s")), window),
    ]


def _stored_chart(samples: Sequence[Sample], read: Read, rows: StoredRows, window: Window, site: str | None = None) -> Markup:
    """Draw what was stored, by the rows' own times; by the samples where the database's log does not go back so far."""
    steps = rows.steps(int(window.step_s), window.now, site)
    before = [one for one in rates(_points(samples, read), window.step_s) if not steps or one[0] <= steps[0][0] - window.step_s]
    unit = "a minute" if window.step_s == MINUTE_S else "an hour"
    return chart("Posts and comments", unit, [*before, *steps], window, running=f"this {unit.split()[1]}" if steps else "now")


def _window(history: History, now: float, rows: StoredRows, *, month: bool) -> tuple[Sequence[Sample], Window]:
    one = Resolution.HOUR if month else Resolution.MINUTE
    samples = history.month if month else history.day
    begin = min([*(sample.at for sample in samples[:1]), *(at for at, _ in rows.steps(one.step_s, now)[:1])], default=now)
    since_first = now - begin + one.step_s
    length_s = min(one.step_s * one.kept, max(since_first, LEAST_STEPS * one.step_s))
    return samples, Window(now=now, length_s=length_s, step_s=one.step_s)


def _points(samples: Sequence[Sample], read: Read) -> Points:
    return [(one.at, read(one)) for one in samples]
