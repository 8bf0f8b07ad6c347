"""Launching a crawler process, hearing its pulse, and ending it together with everything that it started."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace

from redis_components.registry import CrawlerRecord

from .crawler_options import CrawlerOptions
from .logs import SlotLog
from .memory import resident
from .pulse import PulseReader, pulse_pipe
from .terms import Terms

logger = logging.getLogger(__name__)


class LaunchedCrawler:
    """A crawler process in a session of its own; made by `launch`. Ask `poll` and `pulse` often; neither waits."""

    def __init__(self, process: subprocess.Popen[bytes], pulse: PulseReader) -> None:
        self._process = process
        self._pulse = pulse
        self._started_at = self._heard_at = time.monotonic()
        self.record: CrawlerRecord | None = None  # what it last said
        self.terms = Terms()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def lived_s(self) -> float:
        """Seconds since it was launched."""
        return time.monotonic() - self._started_at

    @property
    def silent_s(self) -> float:
        """Seconds since it last said something, or since its launch."""
        return time.monotonic() - self._heard_at

    def excuse(self, seconds: float) -> None:
        """It may have said nothing for so long: the whole node stood still."""
        self._heard_at += seconds

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._process.poll()

    def pulse(self) -> bool:
        """Read what it has said; True when that was something new (then see `record`)."""
        lines = self._pulse.read()
        if not lines:
            return False
        self._heard_at = time.monotonic()
        try:
            for line in lines:
                if terms := Terms.from_line(line):
                    self.terms = terms
                elif line is lines[-1]:
                    self.record = CrawlerRecord.from_json(line)
        except ValueError:
            logger.warning("crawler %s said something that is no record: %.100r", self.pid, lines[-1])
            return False
        return self.record is not None

    def resident(self) -> int:
        """Its resident memory in bytes, read from outside: it may be too busy growing to say so."""
        return resident(self.pid) if self.poll() is None else 0

    def terminate(self) -> None:
        """SIGTERM: finish the pages in flight. Only to the crawler, which ends its own children as it sees fit."""
        if self.poll() is None:
            self._process.terminate()

    def dump_stacks(self) -> None:
        """Have it write to its log where every thread stands; works also while C code holds the interpreter."""
        if self.poll() is None:
            self._process.send_signal(signal.SIGUSR1)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(0.5)

    def kill(self) -> None:
        """SIGKILL to its whole group, and wait for it to be gone."""
        self._signal_group(signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """After its end: end what it left behind, and release the pipe."""
        self._signal_group(signal.SIGKILL)
        self._pulse.close()

    def _signal_group(self, number: int) -> None:
        # The group has the crawler's pid as its id: that is not given to anybody else while one member is left.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def launch(options: CrawlerOptions, log: SlotLog) -> LaunchedCrawler:
    """Start `python -m workers.crawler` as a child of this *thread*: it ends when the thread does, so launch from one that stays.

    Raises OSError when no process can be made.
    """
    pulse, write_fd = pulse_pipe()
    line = replace(options, parent=os.getpid(), pulse_fd=write_fd, log_file=str(log.path)).to_arguments()
    log_fd = log.open()
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "workers.crawler", *line],
            stdin=subprocess.DEVNULL,
            stdout=log_fd,
            stderr=log_fd,
            pass_fds=(write_fd,),
            start_new_session=True,  # Ctrl-C in the worker's terminal is for the worker; it tells its crawlers itself
        )
    except OSError:
        pulse.close()
        raise
    finally:
        os.close(write_fd)
        os.close(log_fd)
    return LaunchedCrawler(process, pulse)
