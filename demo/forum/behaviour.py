"""How the forum behaves, as `POST /control` sets it: one record, one table of what each setting may be."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from redis_components.errors import TrawlError

MAX_RATE = 5_000.0
MAX_LATENCY_MS = 60_000.0


class BadControl(TrawlError):
    """A setting of `/control` is unknown or out of range; the message names it and what is allowed."""


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """`rate` in events per second, `latency_ms` before each page, the others the share of pages (0 to 1) it happens to."""

    rate: float = 0.0
    latency_ms: float = 0.0
    error_rate: float = 0.0
    throttle_rate: float = 0.0
    reset_rate: float = 0.0
    slow_body_rate: float = 0.0

    def changed(self, wanted: object) -> Behaviour:
        """This behaviour with the settings of `wanted`, a dict of names and numbers; nothing else changes.

        Raises BadControl for anything else, and then nothing has changed at all.
        """
        if not isinstance(wanted, dict):
            raise BadControl(f'/control: the body must be a JSON object, for example {{"rate": 5}}; known: {", ".join(_LIMITS)}')
        changed = replace(self, **{name: _checked(name, value) for name, value in wanted.items()})
        if changed.misbehaving_share > 1 + 1e-9:
            raise BadControl(f"/control: {' + '.join(SHARES)} must not exceed 1, it would be {changed.misbehaving_share:g}")
        return changed

    @property
    def misbehaving_share(self) -> float:
        """The share of pages that any kind of misbehaviour happens to."""
        return self.error_rate + self.throttle_rate + self.reset_rate + self.slow_body_rate


SHARES = ("error_rate", "throttle_rate", "reset_rate", "slow_body_rate")
_LIMITS: dict[str, float] = {"rate": MAX_RATE, "latency_ms": MAX_LATENCY_MS, **dict.fromkeys(SHARES, 1.0)}


def _checked(name: object, value: object) -> float:
    if not isinstance(name, str) or name not in _LIMITS:
        raise BadControl(f"/control: unknown setting {str(name)[:40]!r}; known: {', '.join(_LIMITS)}")
    # bool is an int in Python: {"rate": true} is a mistake, not one event per second.
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value) or not 0 <= value <= _LIMITS[name]:
        raise BadControl(f"/control: {name} must be a number from 0 to {_LIMITS[name]:g}, got {repr(value)[:40]}")
    return float(value)
