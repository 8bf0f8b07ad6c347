"""`trawl consume` for each service that declares where its items go: started, restarted, stopped with its parent."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress

import redis

from redis_components.errors import TrawlError
from workers.process.run_module import own_module

from .services import OnLine, Service, ServiceFailed, Services

LOOK_S = 2.0
AGAIN_S = 30.0  # after a consumer that did not stay up: what was missing may be back
STOP_S = 30.0  # longer than one batch takes


class Consumers:
    """One consumer process for each service, or group of one, that declares it. Used from the main thread, as `Services`."""

    def __init__(self, read: Callable[[], Mapping[str, str]], on_line: OnLine) -> None:
        self._read = read
        self._on_line = on_line
        self._running: dict[str, tuple[str, Services]] = {}
        self._not_before: dict[str, float] = {}
        self._look_at = 0.0

    def tend(self) -> None:
        """Start what is declared and missing, restart what has died, stop what is not declared any more."""
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + LOOK_S
            with suppress(TrawlError, OSError, redis.RedisError):  # Redis is away, or the file is being edited: as it was
                self._follow(self._read())
        for name, (_, group) in list(self._running.items()):
            self._try(name, group.tend)

    def stop(self, *, hurry: Callable[[], bool] = lambda: False) -> None:
        """Stop all; what they were writing is finished, or written again by the next one."""
        for name in list(self._running):
            self._drop(name, hurry)

    def pids(self) -> dict[str, int]:
        """The processes that run, by service."""
        return {name: pid for name, (_, group) in self._running.items() for pid in group.pids().values()}

    def _follow(self, targets: Mapping[str, str]) -> None:
        for name, (target, _) in list(self._running.items()):
            if targets.get(name) != target:
                self._drop(name)
        for name, target in targets.items():
            if name in self._running or time.monotonic() < self._not_before.get(name, 0.0):
                continue
            service, _, group_name = name.partition("/")  # the target may have a password: it stands in no command line
            options = ("--group", group_name) if group_name else ()
            command = tuple(own_module("cli.main", "consume", service, *options))  # it reads the target
            group = Services([Service(name=f"consume {name}", command=command, stop_s=STOP_S)], self._on_line)
            self._running[name] = target, group
            self._try(name, group.start)

    def _try(self, name: str, act: Callable[[], None]) -> None:
        try:
            act()
        except ServiceFailed as error:
            self._on_line("trawl", f"{error}; tried again in {AGAIN_S:.0f} s")
            self._drop(name)
            self._not_before[name] = time.monotonic() + AGAIN_S

    def _drop(self, name: str, hurry: Callable[[], bool] = lambda: False) -> None:
        _, group = self._running.pop(name)
        group.stop(hurry=hurry)
