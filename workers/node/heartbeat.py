"""Heartbeat of a node, and the problems of its machine: the disk of its data folder, and its clock.

All times of the fleet are Redis's, but one: a message expires by its sender's clock, and Celery compares that with the clock of
the worker that takes it. A worker whose clock is ahead throws away all that beat sends, and logs no more than "Discarding".
"""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from redis_components import __version__
from redis_components.admin.health import Problem
from redis_components.connection import connect
from redis_components.embedded import data_dir
from redis_components.errors import ConfigError, TrawlError
from redis_components.server.untrusted_values import server_time
from redis_components.server.variables import changed_variables
from workers.process.config_digest import shared_digests
from workers.process.heartbeat import PERIOD_S, Heartbeat
from workers.state.nodes import NodeAnswer, NodeRecord, Nodes
from workers.state.reports import EVERY_S, Troubles

from .health import folder_fault

TOLERATED_S = 3.0  # messages of the fleet are good for 10 s


def off_by(redis_s: float, asked_s: float, answered_s: float) -> float:
    """Return the seconds that our clock is ahead of Redis's (negative: behind), 0 where they may agree.

    `redis_s` is the time that Redis gave in an answer, the others when we asked and had the answer, by our clock; epoch s.
    """
    if asked_s - redis_s > TOLERATED_S:
        return asked_s - redis_s
    return answered_s - redis_s if redis_s - answered_s > TOLERATED_S else 0.0


def complaint(off_s: float) -> str:
    """Describe the difference and the fix, for the operator; `off_s` is not 0."""
    if off_s > 0:
        return f"its clock is {off_s:.0f} s ahead of Redis's: messages have expired when it takes them; set the clock (NTP)"
    return f"its clock is {-off_s:.0f} s behind Redis's: what it sends has expired on arrival; set the clock (NTP)"


RIVAL_BEATS = 3  # in a row
FILES_BEATS = 5  # each site file is looked at
STOP_S = 2.0  # longest wait for the final report; without it the node counts as gone after 15 s

logger = logging.getLogger(__name__)


class NodeBeat:
    """Reports `look()` every 2 s in a daemon thread, until `stop`; Redis may be away meanwhile, and no caller waits for it.

    `look` gives services, capacity and crawlers of the moment; files, version and time are added here. `before` is
    called first each time, `report` gets the faults that an operator has to mend.
    """

    def __init__(
        self,
        nodes: Nodes,
        look: Callable[[], NodeRecord],
        *,
        before: Callable[[], object] = lambda: None,
        report: Callable[[str], object] = lambda _: None,
        period_s: float = PERIOD_S,
    ) -> None:
        self._nodes = nodes
        self._before = before
        self._report = report
        self._instance = secrets.token_hex(8)
        self._others = 0  # beats in a row that have replaced the record of another worker of this name
        self._look = look
        self._started_at = time.time()
        self._answer: NodeAnswer | None = None
        self._beats = 0
        self._files: tuple[str, ...] = ()
        self._heartbeat = Heartbeat(self._beat, period_s=period_s)

    def turned_at(self) -> float:
        """Return when its thread last came round (monotonic)."""
        return self._heartbeat.turned_at

    def start(self) -> None:
        self._heartbeat.start()

    def now(self) -> None:
        """Report a change at once."""
        self._heartbeat.now()

    def stop(self) -> None:
        """Stop, and remove the node's record."""
        name = self._look().name
        self._heartbeat.errand(lambda: self._nodes.forget([name]))
        self._heartbeat.stop(STOP_S)

    def _beat(self) -> None:
        self._before()
        if self._beats % FILES_BEATS == 0:
            self._files = _files()
        self._beats += 1
        record = replace(
            self._look(),
            files=self._files,
            version=__version__,
            started_at=self._started_at,
            instance=self._instance,
            rivals=self._others >= RIVAL_BEATS,
        )
        before, self._answer = self._answer, self._nodes.beat(record, self._answer)
        if before is not None:  # the first one replaces the record of the worker that was here before
            self._notice(record, self._answer.instance)
        drained = self._answer.draining
        if drained != (before is not None and before.draining):
            logger.warning(
                "this node %s", "accepts no more crawlers: it is being drained" if drained else "accepts crawlers again"
            )

    def _notice(self, record: NodeRecord, replaced: str) -> None:
        """Detect a second worker with this name: it beats between two of our beats. Once may be a Redis that came back older."""
        self._others = self._others + 1 if replaced not in ("", self._instance) else 0
        if self._others == RIVAL_BEATS:
            line = f"{record.rivalry()}: give each worker a unique name (celery -A tasks worker -n NAME@%h)"
            logger.error("%s", line)
            self._report(line)


def _files() -> tuple[str, ...]:
    try:
        return shared_digests()
    except (OSError, TrawlError):  # a folder that cannot be read: crawlers report it
        return ()


LITTLE_BYTES = 200 * 2**20
LITTLE_SHARE = 0.03  # of the disk
LAST_REPORT_S = 1.0
MOST_NAMED = 5  # variables in one sentence


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


def restart_problem() -> Problem | None:
    """Return the request for a restart, where a file has other variables than this process."""
    try:
        names = changed_variables()
    except ConfigError as error:
        return Problem(what=f"the changed configuration is wrong, and not in use yet: {error}")
    if not names:
        return None
    shown = ", ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")
    fix = "restart `trawl up`, or each process that you have started (worker, beat, Flower, exporter)"
    return Problem(what=f"changed in .env or trawl.toml since it was started, and not in use yet: {shown}", fix=fix, grave=False)


class MachineWatch:
    """Reports the problems of the machine of the worker `name`, and of its configuration, in a thread, from `start` to `stop`."""

    def __init__(self, name: str) -> None:
        self._name = f"worker {name}"
        self._client = connect()
        self._known = 0
        self._heartbeat = Heartbeat(self.report, period_s=EVERY_S)

    def start(self) -> None:
        self._heartbeat.start()

    def stop(self) -> None:
        self._heartbeat.errand(lambda: Troubles(self._client).report(self._name, []))
        self._heartbeat.stop(LAST_REPORT_S)

    def report(self) -> None:
        """Look, and report."""
        asked_s = time.time()
        clock = clock_problem(server_time(self._client), asked_s, time.time())
        found = [*disk_problems(data_dir()), *filter(None, (clock, restart_problem()))]
        if len(found) != self._known:  # not at each look: figures in them change
            logger.error("this machine: %s", "; ".join(map(str, found)) or "well again")
        self._known = len(found)
        Troubles(self._client).report(self._name, found)
