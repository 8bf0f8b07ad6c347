"""Options of the demo, from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from redis_components.errors import ConfigError

LARGEST = 100_000


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """Each field is read from `TRAWL_DEMO_<NAME>`, in capitals; `keep` from `KEEP`, as in `make demo KEEP=1`."""

    threads: int = 180  # in each of the forum's four boards, at the start
    comments: float = 9.0  # mean per thread; most have few, some have hundreds
    latency_ms: float = 30.0  # of each page of the forum
    error_rate: float = 0.02  # share of pages answered with 500
    throttle_rate: float = 0.003  # share of pages answered with 429, after which every crawler pauses the forum for 1 s
    rate: float = 10.0  # events per second, while the forum is active; some of them edit or delete
    live_s: float = 15.0  # how long it stays active after it was read once
    kill_at: float = 0.3  # stored share of the forum at which a crawler is killed
    seed: int = 1  # of the forum's content
    keep: bool = False  # leave everything running afterwards, until Ctrl-C

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> DemoOptions:
        """Read the options. Raises ConfigError for a value that is not a number."""
        given: dict[str, Any] = {"keep": environment.get("KEEP", "0") not in ("", "0")}
        for field in fields(cls):
            name = f"TRAWL_DEMO_{field.name.upper()}"
            if field.name != "keep" and (text := environment.get(name)):
                given[field.name] = _number(name, text, int if isinstance(field.default, int) else float)
        return cls(**given)


def _number(name: str, text: str, kind: type[int] | type[float]) -> float:
    try:
        number = kind(text)
    except ValueError:
        raise ConfigError(f"{name}={text!r}: must be a {'whole ' if kind is int else ''}number: correct it or unset it") from None
    if not 0 <= number <= LARGEST:
        raise ConfigError(f"{name}={text!r}: must be from 0 to {LARGEST:,}: correct it or unset it")
    return number
