"""Parameters of a supervisor, and the reasons for which it releases its slot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from workers.process.config_digest import config_digest
from workers.process.heartbeat import PERIOD_S
from workers.process.options import CrawlerOptions
from workers.process.page_at_work import PageAtWork
from workers.process.shutdown_times import MARGIN_S, SHUTDOWN_GRACE_S
from workers.state.history import Run
from workers.state.registry import CrawlerRecord

from .slot_history import RestartPolicy


class SlotOutcome(StrEnum):
    """Reason for which a supervisor released its slot."""

    DRAINED = "drained"  # this node is being shut down
    RETIRED = "retired"  # the fleet is smaller now
    LOST = "lost"  # the slot was given to another process while this node was cut off or frozen
    CRASH_LOOPING = "crash-looping"  # its crawlers died too often too fast
    REFUSED = "refused"  # its crawler cannot run as configured
    FINISHED = "finished"  # of a job: its crawler came to the end of the crawl


@dataclass(frozen=True, kw_only=True)
class SupervisorConfig:
    """Timeouts of a supervisor."""

    node_grace_s: float = SHUTDOWN_GRACE_S  # of crawlers, that this node counts with when it is shut down itself
    margin_s: float = MARGIN_S  # from the end of the crawler's own SHUTDOWN_GRACE to SIGKILL
    silence_s: float = 7.0  # of a crawler's main thread (three missed reports) until it is killed: frozen, or stuck in C code
    start_s: float = 60.0  # before its first report: s without CPU time, or s of CPU time (`StartProgress`)
    period_s: float = PERIOD_S  # between renewals of the slot
    restarts: RestartPolicy = field(default_factory=RestartPolicy)


@dataclass(frozen=True, kw_only=True)
class SupervisorHooks:
    """Callbacks of a supervisor to its node: all of them can be left out in tests."""

    draining: Callable[[], bool] = lambda: False  # True while this node is being shut down
    on_launch: Callable[[int], object] = lambda _: None  # with each crawler's pid
    on_start: Callable[[bool], object] = lambda _: None  # True if a crawler came to its first report
    on_record: Callable[[CrawlerRecord], None] = lambda _: None  # with each new record, in another thread; never raises
    on_run: Callable[[Run], object] = lambda _: None  # when a crawler began and ended, in another thread; may fail for Redis
    expire_owner: Callable[[str, str, str], object] = lambda _spider, _owner, _why: None  # reclaim a dead crawler's leases (e)
    on_deadly_page: Callable[[PageAtWork, str], object] = lambda _page, _what: None  # the page at which a crawler hung or died
    on_finished: Callable[[str], object] = lambda _: None  # of a job: with Scrapy's finish reason; may fail for Redis
    declared: Callable[[CrawlerOptions], CrawlerOptions] = lambda options: options  # as the service is declared now; asks Redis
    config: Callable[[], str] = config_digest  # digest of the configuration of a crawler that is launched now
    before: CrawlerRecord | None = None  # the slot's last record
    node: str = ""
