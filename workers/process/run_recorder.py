"""Records the crawler processes of one slot: start, figures and end of each, for `trawl history` and as events."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from dataclasses import replace

import redis

from workers.state.history import Run, RunBy, Runs
from workers.state.registry import CrawlerRecord, Slot
from workers.state.reports import Note, note

from .exit_kinds import Exit, ExitKind

_CLEAN = frozenset(kind.label for kind in ExitKind if kind.clean)


def report_run(client: redis.Redis, run: Run) -> None:
    """Add the present state of a run to the history, with its event. Raises `redis.RedisError`."""
    Runs(client).add(run)
    name = run.spider if run.number is None else f"{run.spider}/{run.number}"
    where, code = f"process {run.pid}{f' on {run.node}' if run.node else ''}", run.exit_code or 0
    if run.ended_at is None:
        note(client, Note(about="crawler", type="started", said=f"{name}: {where}", at=run.started_at))
        return
    signal, why = f" (signal {-code})" if code < 0 else "", f": {run.reason}" if run.reason else ""
    said = f"{name}: {run.outcome}{signal}, {where}, after {run.pages:,} pages{why}"
    note(client, Note(about="crawler", type="ended" if run.outcome in _CLEAN else "died", said=said, at=run.ended_at))


class RunRecorder:
    """Records the runs of a supervisor's crawlers; `send` takes each state of a run, and never waits."""

    def __init__(self, slot: Slot, node: str, send: Callable[[Run], object]) -> None:
        self._slot = slot
        self._node = node
        self._send = send
        self._run: Run | None = None

    def began(self, owner: str, pid: int) -> None:
        """Begin a run: a crawler was launched; `owner` is its id in the frontier."""
        self._run = Run(
            id=owner,
            spider=self._slot.spider,
            by=RunBy.FLEET,
            number=self._slot.number,
            token=self._slot.token,
            node=self._node,
            pid=pid,
            started_at=time.time(),
        )
        self._send(self._run)

    def reported(self, record: CrawlerRecord) -> None:
        """Update the run's figures from a crawler's report."""
        if self._run:
            self._run = with_figures(self._run, record)

    def ended(self, end: Exit, reason: str | None) -> None:
        """End the run."""
        if self._run:
            self._send(replace(self._run, ended_at=time.time(), outcome=end.kind.label, exit_code=end.code, reason=reason))
            self._run = None


def own_run(record: CrawlerRecord, owner: str) -> Run:
    """Return this process's own run, where no supervisor reports it: started by hand, or its supervisor is gone."""
    by_hand = record.number is None
    return Run(
        id=f"hand-{os.getpid()}@{socket.gethostname()}#{record.started_at:.0f}" if by_hand else owner,
        spider=record.spider,
        by=RunBy.HAND if by_hand else RunBy.FLEET,
        number=record.number,
        token=record.token,
        node=record.node,
        pid=record.pid,
        started_at=record.started_at,
    )


def with_figures(run: Run, record: CrawlerRecord) -> Run:
    """Return the run with the figures of its process."""
    peak = max(run.peak_rss_bytes, record.rss_bytes)
    return replace(run, pages=record.pages, items=record.items, peak_rss_bytes=peak)
