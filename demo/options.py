"""Options of the demo, from the environment."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import psutil

from redis_components.errors import ConfigError

from .run_folder import MARK

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


WAIT_S = 5.0
LOOK_S = 0.05


def left_over(run: str, *, wait_s: float = WAIT_S) -> list[str]:
    """Return the processes of this run that still exist after `wait_s`, for people, and kill them."""
    deadline = time.monotonic() + wait_s
    while (left := _marked(run)) and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    lines = [_describe(process) for process in left]
    for process in left:
        try:
            process.kill()
        except psutil.Error:
            continue
    return lines


def _marked(run: str) -> list[psutil.Process]:
    """Find processes by the mark in their environment, which is inherited, so that detached ones are found, too."""
    found = []
    for process in psutil.process_iter():
        try:
            alive = process.status() != psutil.STATUS_ZOMBIE
            if alive and process.pid != os.getpid() and process.environ().get(MARK) == run:
                found.append(process)
        except psutil.Error:  # gone meanwhile, or another user's
            continue
    return found


def _describe(process: psutil.Process) -> str:
    try:
        return f"{process.pid} {' '.join(process.cmdline())[:120]}"
    except psutil.Error:
        return str(process.pid)
