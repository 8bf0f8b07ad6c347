"""A supervisor and the real crawler processes of its slot: whatever happens to them, there is one, or there is a reason."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import psutil
import pytest
import redis

from redis_components.embedded.child_process import ChildProcess
from tests.support import warm_start
from tests.support.fleet import ROOT, toy_environment
from tests.support.processes import arguments, marked, stays, wait_until
from tests.support.redis_server import RedisServer
from workers.logs.slot_log import SlotLog, last_words
from workers.process import forked
from workers.process.exit_kinds import ExitKind
from workers.process.options import CrawlerOptions
from workers.state.history import Run
from workers.state.keys import FleetKeys
from workers.state.registry import CrawlerRecord, CrawlerState, Registry, Slot, SlotCommand, SlotCommandKind
from workers.supervision.slot_history import RestartPolicy
from workers.supervision.supervisor import SlotOutcome, Supervisor, SupervisorConfig, SupervisorHooks

SLOT, RECORDS = FleetKeys().slot("toy", 0), FleetKeys().crawlers()
QUICK = SupervisorConfig(
    margin_s=4.0,
    silence_s=5.0,
    period_s=0.2,
    restarts=RestartPolicy(first_wait_s=0.05, max_quick_failures=2),
)

pytestmark = pytest.mark.usefixtures("no_process_left")


@dataclass
class SupervisedSlot:
    """A supervisor at work in a thread, and what it did to its surroundings."""

    supervisor: Supervisor
    registry: Registry
    slot: Slot
    log: SlotLog
    draining: threading.Event
    expired: list[tuple[str, str]]
    heard: list[CrawlerRecord] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    verdict: SlotOutcome | None = None

    def crawler(self, *, not_pid: int = 0) -> CrawlerRecord:
        """The crawler in the slot, once it crawls."""

        found: list[CrawlerRecord] = []

        def look() -> bool:
            found[:] = [r for r in self.registry.crawlers() if r.state is CrawlerState.RUNNING and r.pages and r.pid != not_pid]
            return bool(found)

        wait_until(look, lambda: f"a crawler crawls; its log:\n{self.said()}")
        return found[0]

    def said(self) -> str:
        return "\n".join(last_words(self.log, 30))

    def last_record(self) -> CrawlerRecord:
        (record,) = self.registry.crawlers()
        return record


class Supervise(Protocol):
    """`with supervise(mode="crawl") as case`: supervise slot 0 until the block ends."""

    def __call__(
        self,
        spider: str = "toy",
        mode: str = "crawl",
        mb: int = 8,
        url: str = "",
        before: CrawlerRecord | None = None,
        slot_ttl_s: float = 10.0,
        **settings: object,
    ) -> AbstractContextManager[SupervisedSlot]: ...


@pytest.fixture
def owner() -> Iterator[subprocess.Popen[bytes]]:
    """The process that warm parents end with."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        process.kill()


@pytest.fixture
def supervise(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: subprocess.Popen[bytes]) -> Supervise:
    monkeypatch.setattr(ChildProcess, "fork", lambda _, asked, files: warm_start.forked(asked, files, ""))
    monkeypatch.setattr(forked, "_owner", owner.pid)

    @contextmanager
    def begin(
        spider: str = "toy",
        mode: str = "crawl",
        mb: int = 8,
        url: str = "",
        before: CrawlerRecord | None = None,
        slot_ttl_s: float = 10.0,
        **settings: object,
    ) -> Iterator[SupervisedSlot]:
        url = url or redis_url
        monkeypatch.chdir(ROOT)
        for name, value in toy_environment(url, tmp_path, SUPERVISED_SLOT=str(tmp_path)).items():
            monkeypatch.setenv(name, value)
        client = redis.Redis.from_url(url)
        registry = Registry(client, slot_ttl_s=slot_ttl_s)
        slot = registry.acquire(spider, 0, "node-a")
        assert slot is not None
        expired: list[tuple[str, str]] = []
        draining, log = threading.Event(), SlotLog(tmp_path / "crawler.log")
        supervisor = Supervisor(
            slot,
            registry,
            options=CrawlerOptions(
                spider=spider,
                arguments={"mode": mode, "mb": str(mb)},
                settings={"HEARTBEAT_INTERVAL": "0.2", "SHUTDOWN_GRACE": "4", **{k: str(v) for k, v in settings.items()}},
            ),
            log=log,
            config=QUICK,
            hooks=SupervisorHooks(
                node="node-a",
                draining=draining.is_set,
                expire_owner=lambda of, owner, _why: expired.append((of, owner)),
                on_record=lambda record: case.heard.append(record),
                on_run=lambda run: case.runs.append(run),
                before=before,
            ),
        )
        case = SupervisedSlot(supervisor=supervisor, registry=registry, slot=slot, log=log, draining=draining, expired=expired)

        def run() -> None:
            case.verdict = supervisor.run()

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield case
        finally:
            draining.set()
            thread.join(60)
            assert not thread.is_alive(), case.said()
            client.close()

    return begin


def crawlers_in_the_slot(tmp_path: Path) -> int:
    return len([p for p in marked("SUPERVISED_SLOT", str(tmp_path)) if "workers.crawler" in arguments(p)])


def test_a_killed_crawler_is_back_at_once_and_never_two_are_in_one_slot(supervise: Supervise, tmp_path: Path) -> None:
    with supervise() as case:
        first = case.crawler()
        psutil.Process(first.pid).kill()
        counts: list[int] = []

        def back() -> bool:
            counts.append(crawlers_in_the_slot(tmp_path))
            return any(r.pid != first.pid and r.state is CrawlerState.RUNNING for r in case.registry.crawlers())

        wait_until(back, case.said, every_s=0)
        second = case.crawler(not_pid=first.pid)
        assert max(counts) <= 1
        assert (second.restarts, second.last_exit, second.token) == (1, "killed (SIGKILL)", first.token)
        wait_until(lambda: case.registry.errors(), case.said)
        assert "killed (SIGKILL): see" in case.registry.errors()[0].what
        assert case.expired == [("toy", f"toy/0#{first.token}.0")]
    begun, killed, _, stopped = case.runs
    assert (begun.id, begun.pid, begun.ended_at) == (f"toy/0#{first.token}.0", first.pid, None)
    assert (killed.id, killed.outcome, killed.exit_code) == (begun.id, "killed", -9)
    assert killed.pages
    assert killed.peak_rss_bytes
    assert (stopped.id, stopped.outcome, stopped.reason) == (f"toy/0#{first.token}.1", "drained", "its node is shutting down")


def test_draining_finishes_the_crawl_and_frees_the_slot(supervise: Supervise, redis_client: redis.Redis) -> None:
    with supervise() as case:
        case.crawler()
        case.draining.set()
        wait_until(lambda: case.verdict, case.said)
    assert case.verdict is SlotOutcome.DRAINED
    assert not redis_client.exists(SLOT)
    assert case.last_record().state is CrawlerState.STOPPED
    assert case.last_record().last_exit == "drained"
    assert case.expired == []
    assert case.heard
    assert "Closing spider (shutdown)" in case.log.path.read_text()


def test_an_order_to_retire_is_obeyed(supervise: Supervise) -> None:
    with supervise() as case:
        case.crawler()
        (view,) = case.registry.slots({}, case.registry.crawlers())
        case.registry.order(view, SlotCommand(word=SlotCommandKind.RETIRE, reason="scaled to toy=0"))
        wait_until(lambda: case.verdict is SlotOutcome.RETIRED, case.said)


def test_a_crawler_that_dies_again_and_again_is_given_up_with_its_last_words(supervise: Supervise) -> None:
    with supervise(mode="exit") as case:
        wait_until(lambda: case.verdict is SlotOutcome.CRASH_LOOPING, case.said)
    record = case.last_record()
    assert record.state is CrawlerState.CRASH_LOOPING
    assert record.last_exit == "crashed (exit code 9)"
    assert record.note == "crashed (exit code 9); 2 failures in a row, each within 10 s"
    assert "Spider opened" in (record.log or "")
    assert any("given up after 2 failures in a row" in error.what for error in case.registry.errors())


@pytest.mark.parametrize("kind", [ExitKind.FINISHED, ExitKind.REFUSED, ExitKind.LOST_SLOT])
def test_a_spiders_own_exit_code_is_not_read_as_trawls(supervise: Supervise, kind: ExitKind) -> None:
    with supervise(mode=f"exit {kind.code}") as case:
        wait_until(lambda: case.verdict is SlotOutcome.CRASH_LOOPING, case.said)
        assert len(case.expired) == 2, "what each had leased is given to others"
    assert case.last_record().last_exit == f"crashed (exit code {kind.code})"


def test_a_crawler_that_cannot_be_launched_is_backed_off_and_given_up_with_the_reason(
    supervise: Supervise, tmp_path: Path
) -> None:
    (tmp_path / "crawler.log").symlink_to(tmp_path / "gone" / "crawler.log")  # as a data folder that went away
    with supervise() as case:
        wait_until(lambda: case.verdict is SlotOutcome.CRASH_LOOPING, lambda: str(case.registry.errors()))
        said = [one.what for one in case.registry.errors()]
        assert len(said) == 2, "each is told once"
        assert all("it could not be launched: No such file or directory" in one for one in said)


def test_a_crawler_that_cannot_run_as_configured_is_not_tried_again(supervise: Supervise) -> None:
    with supervise(spider="nix") as case:
        wait_until(lambda: case.verdict is SlotOutcome.REFUSED, case.said)
    assert case.last_record().state is CrawlerState.REFUSED
    assert case.last_record().error == "trawl: nix: unknown spider 'nix'; there are toy, toy_two"
    assert len(case.expired) == 1


def test_a_frozen_crawler_is_replaced(supervise: Supervise) -> None:
    with supervise() as case:
        first = case.crawler()
        psutil.Process(first.pid).send_signal(signal.SIGSTOP)
        assert case.crawler(not_pid=first.pid).last_exit == "hung (SIGKILL)"


def test_a_supervisor_that_lost_its_slot_ends_its_crawler_at_once(supervise: Supervise, redis_client: redis.Redis) -> None:
    with supervise() as case:
        case.crawler()
        wait_until(
            lambda: redis_client.delete(SLOT, RECORDS) and case.registry.acquire("toy", 0, "node-b"),
            "the slot is another's",
        )
        wait_until(lambda: case.verdict is SlotOutcome.LOST, case.said)
    assert redis_client.exists(SLOT)


@pytest.mark.parametrize(("mode", "end"), [("hang", "aborted"), ("freeze", "killed (SIGKILL)")])
def test_a_crawler_that_does_not_stop_in_time_is_ended_and_its_leases_are_taken_back(
    supervise: Supervise, mode: str, end: str
) -> None:
    with supervise(mode=mode) as case:
        wait_until(lambda: f"INFO: {mode}" in case.said(), case.said)
        case.draining.set()
        wait_until(lambda: case.verdict is SlotOutcome.DRAINED, case.said)
    assert case.expired == [("toy", f"toy/0#{case.slot.token}.0")]
    assert case.last_record().last_exit == end


def test_a_crawler_stuck_in_c_code_is_killed_and_its_stacks_are_logged(supervise: Supervise) -> None:
    with supervise(mode="freeze") as case:
        wait_until(lambda: "hung (SIGKILL)" in str(case.registry.errors()), case.said)
    assert "tests/support/toy/spiders.py" in case.log.path.read_text()


def reload(case: SupervisedSlot, reason: str) -> None:
    (view,) = case.registry.slots({}, case.registry.crawlers())
    case.registry.order(view, SlotCommand(word=SlotCommandKind.RELOAD, reason=reason))


def test_an_order_to_reload_is_obeyed_once_by_a_fresh_process_in_the_same_slot(supervise: Supervise) -> None:
    with supervise() as case:
        first = case.crawler()
        reload(case, "roll 1")
        second = case.crawler(not_pid=first.pid)
        assert (second.last_exit, second.reload, second.restarts, second.token) == ("recycled", "roll 1", 1, first.token)
        assert second.started_at > first.started_at
        reload(case, "roll 2")
        third = case.crawler(not_pid=second.pid)
        assert (third.reload, third.restarts, third.quick_ends) == ("roll 2", 2, 0)
    assert case.expired == []
    assert case.log.path.read_text().count("Spider closed (shutdown)") == 3
    assert [run.reason for run in case.runs if run.ended_at] == [
        "reload: roll 1",
        "reload: roll 2",
        "its node is shutting down",
    ]


def test_an_order_to_reload_ends_the_wait_of_a_crawler_that_failed(supervise: Supervise) -> None:
    with supervise(mode="exit") as case:
        case.supervisor._config = replace(QUICK, restarts=RestartPolicy(first_wait_s=600, max_quick_failures=3))
        wait_until(lambda: [r for r in case.heard if r.state is CrawlerState.BACKING_OFF], case.said)
        reload(case, "roll 1")
        wait_until(lambda: case.log.path.read_text().count("Spider opened") == 2, case.said)


def test_a_crawler_at_its_number_of_pages_finishes_them_and_is_replaced_at_once(supervise: Supervise) -> None:
    with supervise(CRAWLER_MAX_PAGES=20) as case:
        first = case.crawler()
        second = case.crawler(not_pid=first.pid)
        assert second.last_exit == "recycled"
        wait_until(lambda: case.registry.errors(), case.said)
        assert sum(bool(run.ended_at) for run in case.runs) > 1, "the first one was as planned"
        (error,) = case.registry.errors()
        assert "recycled after short lives, again and again: it has fetched" in error.what
        text = case.log.path.read_text()
    assert "(CRAWLER_MAX_PAGES): pages in flight get" in text
    assert "Spider closed (shutdown)" in text
    assert case.expired == []


def test_a_crawler_over_its_soft_memory_limit_finishes_its_pages_and_is_replaced(supervise: Supervise) -> None:
    with supervise(mode="grow", CRAWLER_MEMORY_SOFT_MB=200) as case:
        first = case.crawler()
        second = case.crawler(not_pid=first.pid)
        assert second.last_exit == "recycled"
    assert "MiB of memory are over CRAWLER_MEMORY_SOFT_MB = 200: pages in flight get" in case.log.path.read_text()
    assert case.expired == []


def test_a_grace_that_the_node_does_not_count_with_is_reported(supervise: Supervise) -> None:
    with supervise(SHUTDOWN_GRACE=11) as case:
        case.crawler()
        wait_until(lambda: case.registry.errors(), case.said)
        assert "start workers with TRAWL_SHUTDOWN_GRACE_S=11" in case.registry.errors()[0].what


def test_a_memory_limit_below_what_an_empty_crawler_needs_is_refused_by_name(supervise: Supervise) -> None:
    with supervise(CRAWLER_MEMORY_SOFT_MB=20) as case:
        wait_until(lambda: case.verdict is SlotOutcome.REFUSED, case.said)
    assert "CRAWLER_MEMORY_SOFT_MB = 20 is less than a crawler needs before its first page" in (case.last_record().error or "")


@pytest.mark.parametrize(
    ("mode", "end"),
    [
        ("grow", "out-of-memory"),  # its main thread sees it
        ("swell", "out-of-memory (SIGKILL)"),  # its main thread cannot: its supervisor sees it
    ],
)
def test_a_crawler_over_its_hard_memory_limit_is_ended_at_once(supervise: Supervise, mode: str, end: str) -> None:
    with supervise(mode=mode, mb=240 if mode == "swell" else 8, CRAWLER_MEMORY_HARD_MB=250) as case:
        wait_until(lambda: case.registry.errors(), case.said)
        assert case.registry.errors()[-1].what.startswith(end), case.said()  # the first: it may have died again meanwhile
        assert case.expired


def test_a_browser_under_a_crawler_reserves_what_it_wants_and_counts_with_what_it_touches(supervise: Supervise) -> None:
    """It lives in a session of its own, as Playwright's does, so it is no member of the crawler's process group."""
    with supervise(mode="browser", mb=300, CRAWLER_MEMORY_SOFT_MB=350, CRAWLER_MEMORY_HARD_MB=2000) as case:
        assert case.crawler(not_pid=case.crawler().pid).last_exit == "recycled"
        text = case.log.path.read_text()
        browser, *_ = [int(line.split()[1]) for line in text.splitlines() if line.startswith("browser: ")]
        wait_until(lambda: not psutil.pid_exists(browser), lambda: f"the end of {browser} with its crawler", 30)
    assert "MiB of memory are over CRAWLER_MEMORY_SOFT_MB = 350: pages in flight get" in text


def test_the_crawler_outlives_a_redis_that_comes_back_without_its_data(supervise: Supervise) -> None:
    with RedisServer() as server, supervise(url=server.url) as case:
        before = case.crawler()
        server.kill()
        wait_until(lambda: case.supervisor._heartbeat.unanswered_s > 1, "a few heartbeats that nobody hears")
        server.start()
        after = case.crawler()
        assert (after.pid, after.token) == (before.pid, before.token)
        assert case.registry.acquire("toy", 0, "node-b") is None


def test_no_crawler_is_launched_while_nobody_can_tell_whose_slot_it_is(supervise: Supervise, tmp_path: Path) -> None:
    with RedisServer() as server, supervise(url=server.url, slot_ttl_s=3.0) as case:
        first = case.crawler()
        server.kill()
        wait_until(lambda: case.supervisor._heartbeat.unanswered_s > 3, "Redis is away for longer than a slot lives")
        psutil.Process(first.pid).kill()
        wait_until(lambda: not crawlers_in_the_slot(tmp_path), "the first crawler has ended")
        stays(lambda: not crawlers_in_the_slot(tmp_path), "no crawler is launched", 1.0)
        server.start()
        assert case.crawler(not_pid=first.pid).restarts == 1


def test_a_crawler_that_takes_its_supervisor_along_each_time_is_given_up_too(supervise: Supervise) -> None:
    left = CrawlerRecord(
        spider="toy",
        number=0,
        state=CrawlerState.RUNNING,
        started_at=100.0,
        beat_at=103.0,
        quick_ends=1,
        quick_failures=1,
        restarts=4,
    )
    with supervise(before=left) as case:
        wait_until(lambda: case.verdict is SlotOutcome.CRASH_LOOPING, case.said)
    record = case.last_record()
    assert (record.state, record.restarts) == (CrawlerState.CRASH_LOOPING, 5)
    assert "2 failures in a row" in (record.note or "")
    with supervise(before=record) as case:
        assert case.crawler().quick_failures == 1, "it is tried once more, later"
