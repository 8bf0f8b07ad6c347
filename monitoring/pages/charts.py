"""Small charts as SVG, made here: no script, no picture to fetch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from markupsafe import Markup, escape

WIDTH, HEIGHT = 360, 90
MOST_POINTS = 240
GAP_STEPS = 3  # a line is broken where so many samples are missing

Points = Sequence[tuple[float, float | None]]
"""Time (epoch s) and value; None: unknown."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """What a chart spans: `length_s` seconds up to `now`, with a sample every `step_s`."""

    now: float
    length_s: float
    step_s: float

    @property
    def start(self) -> float:
        return self.now - self.length_s


def chart(title: str, unit: str, points: Points, window: Window) -> Markup:
    """A line from zero up, with its highest and last value in words, for those who do not see it, too."""
    seen = [(at, value) for at, value in points if at >= window.start and (value is None or math.isfinite(value))]
    values = [value for _, value in seen if value is not None]
    if not values:
        return Markup('<figure class="chart"><figcaption>{}</figcaption><p class="empty">no sample yet</p></figure>').format(
            title
        )
    top, last = _ceiling(max(values)), values[-1]
    last_at = next(at for at, value in reversed(seen) if value is not None)
    when = "now" if window.now - last_at <= GAP_STEPS * window.step_s else "last"  # nobody takes samples any more
    said = f"{when} {_figure(last)}, highest {_figure(max(values))} {unit}".strip()
    path = _path(_thinned(seen), top, window)
    return Markup(
        '<figure class="chart"><figcaption>{} <span class="faint">{}</span></figcaption>'
        '<svg viewBox="0 0 {} {}" role="img" aria-label="{}" preserveAspectRatio="none">'
        '<path class="grid" d="M0 .5H{}M0 {}H{}"/><path class="line" d="{}"/></svg>'
        '<p class="axis"><span>{}</span><span>{}</span><span>{}</span></p></figure>'
    ).format(
        *(title, said, WIDTH, HEIGHT, f"{title}: {said}", WIDTH, HEIGHT - 0.5, WIDTH, path),
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
    """At most `MOST_POINTS`: of several the highest, so that no peak is lost."""
    size = math.ceil(len(points) / MOST_POINTS)
    if size <= 1:
        return points
    groups = [points[start : start + size] for start in range(0, len(points), size)]
    return [max(group, key=lambda one: -1.0 if one[1] is None else one[1]) for group in groups]


def _ceiling(value: float) -> float:
    """The next of 1, 2, 5 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= value * (1 - 1e-9))


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def _moment(at: float, window: Window) -> str:
    form = "%H:%M" if window.length_s <= 43_200 else "%d %b %H:%M" if window.length_s <= 172_800 else "%d %b"
    return f"{datetime.fromtimestamp(at, UTC):{form}}"
