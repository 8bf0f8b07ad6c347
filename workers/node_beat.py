"""The heartbeat of a node: its worker's main process says in Redis what it serves and how much room it offers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version

from redis_components.nodes import NodeRecord, Nodes

from .heartbeat import PERIOD_S, Heartbeat

STOP_S = 2.0  # longest wait for the last word; without it the node counts as gone after 15 s

logger = logging.getLogger(__name__)


class NodeBeat:
    """Says `look()` every 2 s in a daemon thread, until `stop`; Redis may be away meanwhile, and nobody waits for it.

    `look` gives services, capacity and crawlers of the moment; version and time are added here.
    """

    def __init__(self, nodes: Nodes, look: Callable[[], NodeRecord], *, period_s: float = PERIOD_S) -> None:
        self._nodes = nodes
        self._look = look
        self._started_at = time.time()
        self._drained = False
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
        drained = self._nodes.beat(replace(self._look(), version=_version(), started_at=self._started_at))
        if drained != self._drained:
            logger.warning("this node %s", "takes no more crawlers: it is being drained" if drained else "takes crawlers again")
        self._drained = drained


def _version() -> str:
    try:
        return version("trawl")
    except PackageNotFoundError:  # run from a folder that was never installed
        return ""
