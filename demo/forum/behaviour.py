"""Behaviour of the forum, as `POST /control` sets it: one record, and a table of allowed values."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from redis_components.errors import TrawlError

from .world import Mix

MAX_RATE = 5_000.0
MAX_LATENCY_MS = 60_000.0
MAX_SKEW = 4.0


class BadControl(TrawlError):
    """A setting of `/control` is unknown or out of range; the message names it and what is allowed."""


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """`rate` in events per second; `edit_rate`, `delete_rate`, `move_rate` are shares of them (0 to 1), the others publish.

    `latency_ms` before each page; `error_rate` to `slow_body_rate` are shares of pages (0 to 1). `skew`: exponent of the power
    law of the rates over the forums. `wall`: a soft block with status 200 instead of a page ("login", "captcha", "empty"; ""
    for none), for all forums and kinds of pages or for `wall_forum` and `wall_page` alone. `etags`: 1 to send an ETag with
    each page, and 304 to a matching If-None-Match.
    """

    rate: float = 0.0
    latency_ms: float = 0.0
    error_rate: float = 0.0
    throttle_rate: float = 0.0
    reset_rate: float = 0.0
    slow_body_rate: float = 0.0
    edit_rate: float = 0.0
    delete_rate: float = 0.0
    move_rate: float = 0.0
    skew: float = 0.0
    wall: str = ""
    wall_forum: str = ""
    wall_page: str = ""
    etags: float = 0.0

    def changed(self, wanted: object) -> Behaviour:
        """Return this behaviour with the settings of `wanted`, a dict of names and numbers.

        Raises BadControl for invalid settings; then nothing is changed.
        """
        if not isinstance(wanted, dict):
            raise BadControl(f'/control: the body must be a JSON object, for example {{"rate": 5}}; known: {", ".join(_KNOWN)}')
        changed = replace(self, **{name: _checked(name, value) for name, value in wanted.items()})
        for shares in (SHARES, CHANGES):
            if (total := sum(getattr(changed, share) for share in shares)) > 1 + 1e-9:
                raise BadControl(f"/control: {' + '.join(shares)} must not exceed 1, it would be {total:g}")
        return changed

    @property
    def mix(self) -> Mix:
        """Shares of the events."""
        return Mix(edit=self.edit_rate, delete=self.delete_rate, move=self.move_rate, skew=self.skew)

    @property
    def misbehaving_share(self) -> float:
        """Share of pages with any kind of misbehaviour."""
        return self.error_rate + self.throttle_rate + self.reset_rate + self.slow_body_rate


SHARES = ("error_rate", "throttle_rate", "reset_rate", "slow_body_rate")
CHANGES = ("edit_rate", "delete_rate", "move_rate")
_LIMITS: dict[str, float] = {
    "rate": MAX_RATE,
    "latency_ms": MAX_LATENCY_MS,
    **dict.fromkeys(SHARES + CHANGES, 1.0),
    "skew": MAX_SKEW,
    "etags": 1.0,
}
_WORDS: dict[str, tuple[str, ...]] = {
    "wall": ("", "login", "captcha", "empty"),
    "wall_page": ("", "index", "list", "thread", "comments"),
}
_KNOWN = (*_LIMITS, *_WORDS, "wall_forum")


def _checked(name: object, value: object) -> Any:
    if not isinstance(name, str) or name not in _KNOWN:
        raise BadControl(f"/control: unknown setting {str(name)[:40]!r}; known: {', '.join(_KNOWN)}")
    if name in _LIMITS:
        return _number(name, value)
    if not isinstance(value, str) or value not in _WORDS.get(name, (value,)):
        allowed = " or ".join(repr(word) for word in _WORDS.get(name, ("f1", "")))
        raise BadControl(f"/control: {name} must be {allowed}, got {repr(value)[:40]}")
    return value


def _number(name: str, value: object) -> float:
    # bool is an int in Python: {"rate": true} is a mistake, not one event per second.
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value) or not 0 <= value <= _LIMITS[name]:
        raise BadControl(f"/control: {name} must be a number from 0 to {_LIMITS[name]:g}, got {repr(value)[:40]}")
    return float(value)
