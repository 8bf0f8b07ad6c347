"""Processes whose clock a test moves, by a library of a few lines that is compiled and loaded before theirs: a file has by how
much, for all that were started with it, at once. What runs on a clock that never goes back (time.monotonic) is not touched, as on
a real machine.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import struct
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

import pytest

from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer

SOURCE = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long long none, *wrong_by = &none;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("TEST_CLOCK_FILE");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *found = mmap(0, sizeof(long long), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (found != MAP_FAILED) wrong_by = found;
}

int clock_gettime(clockid_t id, struct timespec *at) {
  int failed = syscall(SYS_clock_gettime, id, at);
  if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) at->tv_sec += *wrong_by;
  return failed;
}

int gettimeofday(struct timeval *at, void *zone) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
"""
COMPILER = shutil.which("cc") or shutil.which("gcc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler: apt-get install gcc libc6-dev")


@cache
def _library() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "clock.c", Path(folder) / "clock.so"
        source.write_text(SOURCE)
        subprocess.run([str(COMPILER), "-shared", "-fPIC", "-O1", "-o", made, source], check=True, timeout=60)
        return made.read_bytes()


class Clock:
    """A clock that is right until it jumps."""

    def __init__(self, folder: Path) -> None:
        self._file, self._library = folder / "clock", folder / "clock.so"
        self._file.write_bytes(bytes(8))
        self._library.write_bytes(_library())

    def jump(self, seconds: int) -> None:
        """From now on it is wrong by so many seconds."""
        with self._file.open("r+b") as file:
            os.pwrite(file.fileno(), struct.pack("q", seconds), 0)

    @property
    def environment(self) -> dict[str, str]:
        """Of a process that has this clock."""
        return {"LD_PRELOAD": str(self._library), "TEST_CLOCK_FILE": str(self._file)}


class RedisWithClock(RedisServer):
    """A server with its own clock."""

    def __init__(self, folder: Path, *, aof: bool = False) -> None:
        self.clock = Clock(folder)
        super().__init__(aof=aof)
        given = " ".join(f"{name}='{value}'" for name, value in self.clock.environment.items())
        script = folder / "redis-server-with-clock"
        # A thread of its allocator waits until a time of this clock: where that was set back, the wait would end at once, again
        # and again, for a whole processor.
        script.write_text(f'#!/bin/sh\nexec env {given} {self.binary.path} "$@" --jemalloc-bg-thread no\n')
        script.chmod(0o755)
        self.binary = dataclasses.replace(self.binary, path=script)
        self._server = self._new()

    def is_wrong_by(self) -> float:
        """Seconds between its clock and this process's."""
        seconds, micros = self.client().time()
        return float(seconds) + float(micros) / 1e6 - time.time()

    def set_to(self, moment: float) -> None:
        """Let its clock show this time (epoch s); returns when it does."""
        wanted = round(moment - time.time())
        self.clock.jump(wanted)
        wait_until(lambda: abs(self.is_wrong_by() - wanted) < 60, "the clock has not jumped")
