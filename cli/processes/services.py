"""Child processes that belong together: started, watched, restarted when they die, and stopped in order.

    services = Services([Service(name="beat", command=(sys.executable, "-m", ...))], on_line=print_line)
    services.start()
    while not stopping:
        services.tend()          # restarts what died; raises ServiceFailed when that does not help
        time.sleep(0.1)
    services.stop()

Used from one thread, the main one: the kernel ends a child when the *thread* that started it ends, so it has to be one that
stays. Each child runs in a new session: Ctrl-C in the terminal reaches only us, and we stop the children in order.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from shutil import which
from types import FrameType
from typing import IO

from redis_components.embedded.child_process import ChildProcess
from redis_components.errors import TrawlError
from workers.node.health import Condition, StatusFile
from workers.node.health_check import read_line

MAX_RESTARTS = 3  # of one service within the window; then restarting does not help
WINDOW_S = 60.0
RESTART_WAIT_S = 1.0
STOP_S = 20.0  # from SIGTERM to SIGKILL, where a service has no other time
KILLED_S = 5.0  # longest wait for the end of what was sent SIGKILL
TICK_S = 0.05
LOOK_S = 1.0  # at a service's status file
LAST_LINES = 12

OnLine = Callable[[str, str], None]
"""Called with a service's name and a line of its output, in a thread of that service."""


class ServiceFailed(TrawlError):
    """A service does not stay up; the message holds its exit and its last words."""


@dataclass(frozen=True, kw_only=True)
class Service:
    """A program to run; `command` begins with an absolute path, `environment` is added to ours."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    stop_s: float = STOP_S
    role: str = ""  # of its status file, where it has one


class Services:
    """Some services, as one. `on_line` gets every line that they print, and ours about them (service name `trawl`)."""

    def __init__(self, services: Sequence[Service], on_line: OnLine) -> None:
        self._on_line = on_line
        self._running = [_Running(service, on_line) for service in services]

    def start(self) -> None:
        """Start all, in order. Raises ServiceFailed; what was started already goes on until `stop`."""
        for one in self._running:
            one.start()

    def tend(self) -> None:
        """Look at each, end what hangs, and start what has died once more. Raises ServiceFailed when it dies again and again."""
        for one in self._running:
            if why := one.hangs():
                self._on_line("trawl", f"{one.service.name} hangs ({why}); it is ended")
                one.kill()
            if one.ended_unasked():
                one.restart_soon()
                self._on_line("trawl", f"{one.service.name} ended ({one.exit}); starting it again")
            one.start_if_due()

    def stop(self, *, hurry: Callable[[], bool] = lambda: False) -> None:
        """Send SIGTERM to all at once, the last started first. Each gets its time to end well, unless `hurry` returns True."""
        stopping = [one for one in reversed(self._running) if one.terminate()]
        now = time.monotonic()
        for one in reversed(self._running):
            one.end(now + one.service.stop_s, hurry)
            if one in stopping:
                self._on_line("trawl", f"{one.service.name} stopped ({one.exit})")

    def pids(self) -> dict[str, int]:
        """Return the running processes by service."""
        return {one.service.name: one.pid for one in self._running if one.pid}


class _StatusLook:
    """Looks at the status file of a process, by the clock of this one alone: what stood still together with us is not blamed."""

    def __init__(self, role: str, pid: int) -> None:
        self._path = str(StatusFile(role, pid=pid).path)
        self._line: tuple[float, float, str, str] | None = None
        self._unchanged_s, self._looked_at = 0.0, time.monotonic()

    def hangs(self) -> str | None:
        """Return why the process hangs; None where it does not, or there is no file yet."""
        if (passed_s := time.monotonic() - self._looked_at) < LOOK_S:
            return None
        self._looked_at += passed_s
        try:
            line = read_line(self._path)
        except (OSError, ValueError):
            return None
        _, limit_s, state, words = line
        self._unchanged_s = self._unchanged_s + min(passed_s, 2 * LOOK_S) if line == self._line else 0.0
        self._line = line
        if state == Condition.HUNG:
            return words
        return f"nothing was heard of it for {limit_s:.0f} s; before: {words}" if self._unchanged_s > limit_s else None


class _Running:
    """The present process of a service, and the thread that reads its output."""

    def __init__(self, service: Service, on_line: OnLine) -> None:
        self.service = service
        self._on_line = on_line
        self._process: ChildProcess | None = None
        self._reader: threading.Thread | None = None
        self._said: deque[str] = deque(maxlen=LAST_LINES)
        self._deaths: deque[float] = deque(maxlen=MAX_RESTARTS + 1)
        self._start_at: float | None = None
        self._look: _StatusLook | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process and self._process.poll() is None else None

    @property
    def exit(self) -> str:
        """Return the end of its last process in words."""
        code = self._process.returncode if self._process else None
        if code is None:
            return "runs"
        return f"exit code {code}" if code >= 0 else signal.Signals(-code).name

    def start(self) -> None:
        if not which(self.service.command[0]):
            raise ServiceFailed(f"{self.service.name} cannot be started: {self.service.command[0]} is not an executable program")
        self._said.clear()
        try:
            self._process = ChildProcess(
                self.service.command,
                ends_with_us=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env={**os.environ, "PYTHONUNBUFFERED": "1", **self.service.environment},
            )
        except OSError as error:
            raise ServiceFailed(f"{self.service.name} cannot be started: {error}") from error
        assert self._process.stdout
        self._start_at = None
        self._look = _StatusLook(self.service.role, self._process.pid) if self.service.role else None
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout,), name=self.service.name, daemon=True)
        self._reader.start()

    def ended_unasked(self) -> bool:
        return self._start_at is None and self._process is not None and self._process.poll() is not None

    def hangs(self) -> str | None:
        """Return why its process hangs; None where it does not, or has no status file."""
        return self._look.hangs() if self._look and self.pid else None

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self._end_group()
        with suppress(subprocess.TimeoutExpired):
            assert self._process
            self._process.wait(KILLED_S)

    def restart_soon(self) -> None:
        self._end_group()
        now = time.monotonic()
        self._deaths.append(now)
        if len(self._deaths) > MAX_RESTARTS and now - self._deaths[0] < WINDOW_S:
            raise ServiceFailed(
                f"{self.service.name} ended {len(self._deaths)} times within {WINDOW_S:.0f} s ({self.exit}): {self._last_words()}"
            )
        self._start_at = now + RESTART_WAIT_S

    def start_if_due(self) -> None:
        if self._start_at is not None and time.monotonic() >= self._start_at:
            self.start()

    def terminate(self) -> bool:
        """SIGTERM; False when it does not run."""
        self._start_at = None
        if self._process is None or self._process.poll() is not None:
            return False
        self._process.terminate()
        return True

    def end(self, deadline: float, hurry: Callable[[], bool]) -> None:
        """Wait for its end, at most until `deadline` (monotonic); then end it, and in any case what it has left behind."""
        if self._process is None:
            return
        while self._process.poll() is None and time.monotonic() < deadline and not hurry():
            time.sleep(TICK_S)
        self.kill()

    def _end_group(self) -> None:
        """SIGKILL, once, for what is left of it and of what it started in its session."""
        if self._process:
            self._process.kill_group()
        if self._reader:
            self._reader.join(KILLED_S)  # its last words; a pipe that a grandchild holds open must not keep us

    def _read(self, pipe: IO[str]) -> None:
        with pipe:
            for line in pipe:
                text = line.rstrip("\n")
                self._said.append(text)
                self._on_line(self.service.name, text)

    def _last_words(self) -> str:
        return " | ".join(line.strip() for line in list(self._said)[-4:] if line.strip()) or "it printed nothing"


class Interrupts:
    """The first asks for the end, the second for a quick one. An exception in the middle of a start would lose a process."""

    def __init__(self) -> None:
        self.count = 0

    def listen(self) -> None:
        """From now on count SIGINT, SIGTERM and SIGHUP (the terminal was closed). From the main thread."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup: the terminal may go
                signal.signal(number, self._hear)

    @property
    def asked(self) -> bool:
        return self.count > 0

    @property
    def impatient(self) -> bool:
        return self.count > 1

    def _hear(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
