"""Problems of a worker's machine: the disk of its data folder, and its clock. Reported to the fleet every few seconds."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

from redis_components.connection import connect
from redis_components.embedded import data_dir
from redis_components.server.health import Problem
from redis_components.server.untrusted_values import server_time
from workers.process.heartbeat import Heartbeat
from workers.state.troubles import EVERY_S, Troubles

from .health import folder_fault
from .heartbeat import complaint, off_by

LITTLE_BYTES = 200 * 2**20
LITTLE_SHARE = 0.03  # of the disk
STOP_S = 1.0

logger = logging.getLogger(__name__)


def disk_problems(folder: Path) -> Iterator[Problem]:
    """Yield the faults of the data folder and its disk."""
    if fault := folder_fault(folder):
        yield Problem(what=f"no crawler starts here: {fault}", fix="make room, or mend the folder; it goes on without a restart")
        return
    place = next(one for one in (folder, *folder.parents) if one.exists())
    found = os.statvfs(place)
    free, size = found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
    if free < min(LITTLE_BYTES, size * LITTLE_SHARE):
        what = f"{free / 2**20:,.0f} MiB are free for {folder}"
        yield Problem(what=what, fix="make room: where the disk is full, nothing is stored", grave=False)


def clock_problem(redis_s: float, asked_s: float, answered_s: float) -> Problem | None:
    """Return the fault of this machine's clock, by Redis's time and the times of the request and its answer."""
    off_s = off_by(redis_s, asked_s, answered_s)
    return Problem(what=complaint(off_s)) if off_s else None


class MachineWatch:
    """Reports the problems of the machine of the worker `name`, in a thread, from `start` to `stop`."""

    def __init__(self, name: str) -> None:
        self._name = f"worker {name}"
        self._client = connect()
        self._known = 0
        self._heartbeat = Heartbeat(self.report, period_s=EVERY_S)

    def start(self) -> None:
        self._heartbeat.start()

    def stop(self) -> None:
        self._heartbeat.errand(lambda: Troubles(self._client).report(self._name, []))
        self._heartbeat.stop(STOP_S)

    def report(self) -> None:
        """Look, and report."""
        asked_s = time.time()
        clock = clock_problem(server_time(self._client), asked_s, time.time())
        found = [*disk_problems(data_dir()), *([clock] if clock else [])]
        if len(found) != self._known:  # not at each look: figures in them change
            logger.error("this machine: %s", "; ".join(map(str, found)) or "well again")
        self._known = len(found)
        Troubles(self._client).report(self._name, found)
