"""Processes whose clock a test moves, by libfaketime (`apt-get install faketime`): a file says by how much, for all that were
started with it, at once. What runs on a clock that never goes back (time.monotonic) is not touched, as on a real machine.
"""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import pytest

from tests.support.redis_server import RedisServer

LIBRARY = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), None)
needs_faketime = pytest.mark.skipif(LIBRARY is None, reason="libfaketime is not installed: apt-get install faketime")


class Clock:
    """A clock that is right until it jumps."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock"
        self.jump(0)

    def jump(self, seconds: int) -> None:
        """From now on it is wrong by so many seconds."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{seconds:+d}\n")
        new.rename(self._file)

    @property
    def environment(self) -> dict[str, str]:
        """Of a process that has this clock."""
        return {
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }


class RedisWithClock(RedisServer):
    """A server with its own clock. The test is skipped for one that loads jemalloc, as Debian's does: the two libraries wait
    for each other while it starts.
    """

    def __init__(self, folder: Path, *, aof: bool = False) -> None:
        self.clock = Clock(folder)
        super().__init__(aof=aof)
        if b"libjemalloc.so" in self.binary.path.read_bytes():
            self.close()
            pytest.skip(f"{self.binary} does not start with libfaketime")
        given = " ".join(f"{name}='{value}'" for name, value in self.clock.environment.items())
        script = folder / "redis-server-with-clock"
        script.write_text(f'#!/bin/sh\nexec env {given} {self.binary.path} "$@"\n')
        script.chmod(0o755)
        self.binary = dataclasses.replace(self.binary, path=script)
        self._server = self._new()

    def is_wrong_by(self) -> float:
        """Seconds between its clock and this process's."""
        seconds, micros = self.client().time()
        return float(seconds) + float(micros) / 1e6 - time.time()
