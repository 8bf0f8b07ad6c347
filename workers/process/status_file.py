"""The status file of a long-running process, which its health check reads (`workers.node.health_check`).

`FOLDER/ROLE@HOST.PID` holds one line: epoch s, after how many seconds of silence the process counts as dead, state, words.
FOLDER is TRAWL_HEALTH_DIR. The line is padded and written in place, so that it can be written on a full disk, too. systemd's
watchdog gets a datagram with each line of a process that does not hang (`trawl config systemd` has the units).
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from redis_components.embedded.files import FILE, private_folder
from workers.environment.variables import Health

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

    def __init__(self, role: str, folder: Path | None = None, *, limit_s: float = LIMIT_S, pid: int | None = None) -> None:
        self._role = role
        self._folder = folder or Health.read().health_dir
        self._limit_s = limit_s
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
        line = f"{time.time():.1f} {self._limit_s:g} {condition} {' '.join(words.split())}".encode()[: LINE_BYTES - 1]
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
    try:
        os.kill(int(pid), 0)
    except PermissionError:
        return True
    except (OSError, ValueError, OverflowError):
        return False
    return True
