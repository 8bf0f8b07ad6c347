"""The health of a long-running process: its status file, which its health check reads (`workers.node.health_check`).

`FOLDER/ROLE@HOST.PID` holds one line: epoch s, after how many seconds of silence the process counts as dead, state, words.
FOLDER is TRAWL_HEALTH_DIR. The line is padded and written in place, so that it can be written on a full disk, too. systemd's
watchdog gets a datagram with each line of a process that does not hang (`trawl config systemd` has the units).

For a node, a thread of the worker's main process checks every few seconds: the worker's event loop, which ticks while it is
connected to the broker; the thread of the node's heartbeat; the data folder, without which no crawler starts.
"""

from __future__ import annotations

import errno
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import psutil

from redis_components.embedded.files import FILE, private_folder
from workers.environment.variables import Health
from workers.process import pipes

LIMIT_S = 60.0
WATCHDOG_S = 2 * LIMIT_S  # systemd counts from the start of the process; its first line comes some seconds later
LINE_BYTES = 512


class Condition(StrEnum):
    """State that a process reports of itself."""

    OK = "ok"
    WAITS = "waits"  # for something that is not its own, such as Redis: a restart would not help
    BROKEN = "broken"  # it cannot do its job, and a restart elsewhere may help
    HUNG = "hung"  # its loop or its heartbeat stands still: a restart helps


class StatusFile:
    """Status file of this process, or of `pid`, in the role `worker` or `beat`. Nothing here raises: a process works without it,
    too.
    """

    def __init__(self, role: str, folder: Path | None = None, *, pid: int | None = None) -> None:
        self._role = role
        self._folder = folder or Health.read().health_dir
        self._pid = os.getpid() if pid is None else pid
        self.path = self._folder / f"{role}@{os.uname().nodename}.{self._pid}"

    def begin(self) -> None:
        """Remove the files of dead processes of this role, and report that this process starts."""
        mine = f"{self._role}@{os.uname().nodename}."
        with suppress(OSError):
            for path in self._folder.iterdir():
                if path.name.startswith(mine) and not _lives(path.name.rpartition(".")[2]):
                    path.unlink(missing_ok=True)
        self.write(Condition.OK, "it starts")

    def write(self, condition: Condition, words: str) -> None:
        """Write the state now; a process that was forked from this one writes nothing."""
        if os.getpid() != self._pid:
            return
        line = f"{time.time():.1f} {LIMIT_S:g} {condition} {' '.join(words.split())}".encode()[: LINE_BYTES - 1]
        with suppress(OSError):
            private_folder(self._folder)
            fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE)
            try:
                os.pwrite(fd, line.ljust(LINE_BYTES - 1) + b"\n", 0)
            finally:
                os.close(fd)
        if condition is not Condition.HUNG:
            _feed_watchdog()

    def end(self) -> None:
        """Remove the file after an orderly end."""
        if os.getpid() == self._pid:
            with suppress(OSError):
                self.path.unlink(missing_ok=True)


def _feed_watchdog() -> None:
    """Send systemd that this process lives, where systemd waits for that (sd_notify)."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address[:1] in ("/", "@") and os.environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid()):
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.sendto(b"WATCHDOG=1", socket.MSG_DONTWAIT, address.replace("@", "\0", 1) if address[0] == "@" else address)


def _lives(pid: str) -> bool:
    return pid.isdecimal() and len(pid) < 10 and psutil.pid_exists(int(pid))


LOOK_S = 5.0
STILL_LIMIT_S = 180.0  # a call that waits for Redis is ended by its timeouts long before
FULL_BYTES = 1024 * 1024  # less than this is a full disk: no crawler can write its log


@dataclass(frozen=True, kw_only=True)
class NodeStatus:
    """State of a worker at one time."""

    connected: bool  # to the broker
    loop_silent_s: float  # since its event loop ticked
    beat_silent_s: float  # since its heartbeat came round
    folder_fault: str | None  # why crawlers could not write
    hosted: int = 0  # crawlers that it hosts


def condition(look: NodeStatus) -> tuple[Condition, str]:
    """Return the verdict, for the status file. Pure."""
    if look.beat_silent_s > STILL_LIMIT_S:
        return Condition.HUNG, f"its heartbeat has stood still for {look.beat_silent_s:.0f} s"
    if look.connected and look.loop_silent_s > STILL_LIMIT_S:
        return Condition.HUNG, f"its event loop has stood still for {look.loop_silent_s:.0f} s"
    if look.folder_fault:
        return Condition.BROKEN, look.folder_fault
    if not look.connected:
        return Condition.WAITS, f"it waits for the broker; it hosts {look.hosted} crawlers"
    return Condition.OK, f"it hosts {look.hosted} crawlers"


def folder_fault(folder: Path) -> str | None:
    """Return why a crawler could not write below the data folder, and the fix; None where it could. Costs no write."""
    place = next((one for one in (folder, *folder.parents) if one.exists()), folder)
    if not place.is_dir():
        return f"{place} is not a folder: set TRAWL_DATA_DIR to one that can be written"
    if not os.access(place, os.W_OK | os.X_OK):
        try:
            read_only = bool(os.statvfs(place).f_flag & os.ST_RDONLY)
        except OSError as error:
            return f"the data folder {folder} cannot be used: {error.strerror}"
        if read_only:
            return f"the data folder {folder} is on a read-only file system: mount a volume or a tmpfs there (TRAWL_DATA_DIR)"
        return f"the data folder {folder} cannot be written by user {os.geteuid()}: change its owner, or TRAWL_DATA_DIR"
    free = os.statvfs(place)
    if free.f_blocks and free.f_bavail * free.f_frsize < FULL_BYTES:
        return f"the disk of the data folder {folder} is full: {os.strerror(errno.ENOSPC)}"
    return None


class NodeHealth:
    """Writes the status file of a worker, from `start` to `stop`."""

    def __init__(self, file: StatusFile, folder: Path, *, hosted: Callable[[], int]) -> None:
        self._file, self._folder, self._hosted = file, folder, hosted
        self._connected = False
        self._loop_at = self._thawed_at = time.monotonic()
        self.beat_at: Callable[[], float] = time.monotonic  # when the node's heartbeat came round; until it has one, now
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="health", daemon=True)

    def start(self) -> None:
        self._file.begin()
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._file.end()

    def connected(self, connected: bool) -> None:
        """Note that the worker has connected to the broker, or lost it."""
        self._connected, self._loop_at = connected, time.monotonic()

    def tick(self) -> None:
        """Note a turn of the worker's event loop."""
        self._loop_at = time.monotonic()

    def look(self) -> NodeStatus:
        beat_at = max(self.beat_at(), self._thawed_at)  # before the clock is read: it may come round in between
        return NodeStatus(
            connected=self._connected,
            loop_silent_s=time.monotonic() - self._loop_at,
            beat_silent_s=time.monotonic() - beat_at,
            folder_fault=folder_fault(self._folder),
            hosted=self._hosted(),
        )

    def _run(self) -> None:
        while not self._ended.is_set():
            self._file.write(*condition(self.look()))
            # Not behind `+=`, which reads before the sleep: it would undo the ticks of meanwhile.
            frozen_s = pipes.sleep(LOOK_S)
            self._loop_at += frozen_s
            if frozen_s:
                self._thawed_at = time.monotonic()
        self._file.end()
