"""Activity of the forum over time: day and night, and bursts. Pure."""

from __future__ import annotations

from math import pi, sin
from random import Random

DAY_S = 86_400
BURST_S = 900
_SWING = 0.8  # the busiest hour has (1 + swing) / (1 - swing) = nine times the events of the quietest
_BURST_SHARE, _BURST_FACTOR = 0.1, 4.0
_QUIET_FACTOR = (1 - _BURST_SHARE * _BURST_FACTOR) / (1 - _BURST_SHARE)


def liveliness(seed: int, forum_s: float) -> float:
    """Return the factor of the rate of events `forum_s` seconds of forum time after the opening; its mean is 1.

    A day is a sine (the opening is at its mean, rising). Every quarter of an hour is either a burst, one in ten, or a little
    quieter than the mean: traffic of forums comes in bursts, not as a Poisson process.
    """
    day = 1 + _SWING * sin(2 * pi * forum_s / DAY_S)
    burst = Random(f"forum bursts {seed} {int(forum_s // BURST_S)}").random() < _BURST_SHARE
    return day * (_BURST_FACTOR if burst else _QUIET_FACTOR)


def popularity(forums: int, skew: float, forum_s: float) -> list[float]:
    """Return a weight for each forum, in order: the power law rank ** -skew. The ranks move by one forum each day of forum
    time, so that activity does not stay where a crawler has learned it.
    """
    days = int(forum_s // DAY_S)
    return [((index + days) % forums + 1) ** -skew for index in range(forums)]
