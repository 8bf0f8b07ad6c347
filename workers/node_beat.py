"""The heartbeat of a node: its worker's main process says in Redis what it serves and how much room it offers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version

from redis_components.errors import TrawlError
from redis_components.nodes import NodeAnswer, NodeRecord, Nodes

from .clock import complaint, off_by
from .config_digest import config_digest
from .heartbeat import PERIOD_S, Heartbeat

STOP_S = 2.0  # longest wait for the last word; without it the node counts as gone after 15 s

logger = logging.getLogger(__name__)


class NodeBeat:
    """Says `look()` every 2 s in a daemon thread, until `stop`; Redis may be away meanwhile, and nobody waits for it.

    `look` gives services, capacity and crawlers of the moment; configuration, version and time are added here. `before` is done
    first each time, `report` is told what an operator has to mend.
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
        self._clock_off_s = 0.0
        self._look = look
        self._started_at = time.time()
        self._answer: NodeAnswer | None = None
        self._heartbeat = Heartbeat(self._beat, period_s=period_s)

    def start(self) -> None:
        self._heartbeat.start()

    def now(self) -> None:
        """Say at once what has changed."""
        self._heartbeat.now()

    def stop(self) -> None:
        """The last word: the node is gone."""
        name = self._look().name
        self._heartbeat.errand(lambda: self._nodes.forget([name]))
        self._heartbeat.stop(STOP_S)

    def _beat(self) -> None:
        self._before()
        record = replace(self._look(), config=_config(), version=_version(), started_at=self._started_at)
        asked_at = time.time()
        before, self._answer = self._answer, self._nodes.beat(replace(record, clock_off_s=self._clock_off_s), self._answer)
        self._compare(off_by(self._answer.at, asked_at, time.time()))
        drained = self._answer.draining
        if drained != (before is not None and before.draining):
            logger.warning("this node %s", "takes no more crawlers: it is being drained" if drained else "takes crawlers again")

    def _compare(self, off_s: float) -> None:
        before, self._clock_off_s = self._clock_off_s, off_s
        if off_s and not before:
            logger.error("this node: %s", complaint(off_s))
            self._report(complaint(off_s))


def _config() -> str:
    try:
        return config_digest()
    except (OSError, TrawlError):  # a folder that cannot be read: crawlers will say so
        return ""


def _version() -> str:
    try:
        return version("trawl")
    except PackageNotFoundError:  # run from a folder that was never installed
        return ""
