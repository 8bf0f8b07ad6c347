"""A supervisor and the real crawler processes of its slot: whatever happens to them, there is one, or there is a reason."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import psutil
import pytest
import redis

from redis_components.fleet.registry import CrawlerRecord, CrawlerState, Registry, Slot, SlotCommand, SlotCommandKind
from redis_components.fleet.runs import Run
from redis_components.keys import FleetKeys
from tests.support.fleet import ROOT, toy_environment
from tests.support.processes import arguments, marked, stays, wait_until
from tests.support.redis_server import RedisServer
from workers.logs.slot_log import SlotLog
from workers.logs.tail import last_words
from workers.process.options import CrawlerOptions
from workers.supervision.restart_policy import RestartPolicy
from workers.supervision.supervisor import Supervisor
from workers.supervision.supervisor_config import SupervisorConfig, Surroundings, Verdict

SLOT, RECORDS = FleetKeys().slot("toy", 0), FleetKeys().crawlers()
QUICK = SupervisorConfig(
    margin_s=4.0,
    silence_s=5.0,
    period_s=0.2,
    restarts=RestartPolicy(first_wait_s=0.05, max_quick_failures=2),
)

pytestmark = pytest.mark.usefixtures("no_process_left")


@dataclass
class Stage:
    """A supervisor at work in a thread, and what it did to its surroundings."""

    supervisor: Supervisor
    registry: Registry
    slot: Slot
    log: SlotLog
    draining: threading.Event
    expired: list[tuple[str, str]]
    heard: list[CrawlerRecord] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    verdict: Verdict | None = None

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


class Act(Protocol):
    """`with act(mode="crawl") as stage`: supervise slot 0 until the block ends."""

    def __call__(
        self,
        spider: str = "toy",
        mode: str = "crawl",
        mb: int = 8,
        url: str = "",
        before: CrawlerRecord | None = None,
        slot_ttl_s: float = 10.0,
        **settings: object,
    ) -> AbstractContextManager[Stage]: ...


@pytest.fixture
def act(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Act:
    @contextmanager
    def begin(
        spider: str = "toy",
        mode: str = "crawl",
        mb: int = 8,
        url: str = "",
        before: CrawlerRecord | None = None,
        slot_ttl_s: float = 10.0,
        **settings: object,
    ) -> Iterator[Stage]:
        url = url or redis_url
        monkeypatch.chdir(ROOT)
        for name, value in toy_environment(url, tmp_path, STAGE=str(tmp_path)).items():
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
            surroundings=Surroundings(
                node="node-a",
                draining=draining.is_set,
                expire_owner=lambda of, owner, _why: expired.append((of, owner)),
                on_record=lambda record: stage.heard.append(record),
                on_run=lambda run: stage.runs.append(run),
                before=before,
                config=lambda: "c1",
            ),
        )
        stage = Stage(supervisor=supervisor, registry=registry, slot=slot, log=log, draining=draining, expired=expired)

        def run() -> None:
            stage.verdict = supervisor.run()

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield stage
        finally:
            draining.set()
            thread.join(60)
            assert not thread.is_alive(), stage.said()
            client.close()

    return begin


def crawlers_in_the_slot(tmp_path: Path) -> int:
    return len([p for p in marked("STAGE", str(tmp_path)) if "workers.crawler" in arguments(p)])


def test_a_killed_crawler_is_back_at_once_and_never_two_are_in_one_slot(act: Act, tmp_path: Path) -> None:
    with act() as stage:
        first = stage.crawler()
        psutil.Process(first.pid).kill()
        counts: list[int] = []

        def back() -> bool:
            counts.append(crawlers_in_the_slot(tmp_path))
            return any(r.pid != first.pid and r.state is CrawlerState.RUNNING for r in stage.registry.crawlers())

        wait_until(back, stage.said, every_s=0)
        second = stage.crawler(not_pid=first.pid)
        assert max(counts) <= 1
        assert (second.restarts, second.last_exit, second.token) == (1, "killed (SIGKILL)", first.token)
        wait_until(lambda: stage.registry.errors(), stage.said)
        assert "killed (SIGKILL): see" in stage.registry.errors()[0].what
        assert stage.expired == [("toy", f"toy/0#{first.token}.0")]
    begun, killed, _, stopped = stage.runs
    assert (begun.id, begun.pid, begun.ended_at) == (f"toy/0#{first.token}.0", first.pid, None)
    assert (killed.id, killed.outcome, killed.exit_code) == (begun.id, "killed", -9)
    assert killed.pages
    assert killed.peak_rss_bytes
    assert (stopped.id, stopped.outcome, stopped.reason) == (f"toy/0#{first.token}.1", "drained", "its node is shutting down")


def test_draining_finishes_the_crawl_and_frees_the_slot(act: Act, redis_client: redis.Redis) -> None:
    with act() as stage:
        stage.crawler()
        stage.draining.set()
        wait_until(lambda: stage.verdict, stage.said)
    assert stage.verdict is Verdict.DRAINED
    assert not redis_client.exists(SLOT)
    assert stage.last_record().state is CrawlerState.STOPPED
    assert stage.last_record().last_exit == "drained"
    assert stage.expired == []
    assert stage.heard
    assert "Closing spider (shutdown)" in stage.log.path.read_text()


def test_an_order_to_retire_is_obeyed(act: Act) -> None:
    with act() as stage:
        stage.crawler()
        (view,) = stage.registry.slots({}, stage.registry.crawlers())
        stage.registry.order(view, SlotCommand(word=SlotCommandKind.RETIRE, reason="scaled to toy=0"))
        wait_until(lambda: stage.verdict is Verdict.RETIRED, stage.said)


def test_a_crawler_that_dies_again_and_again_is_given_up_with_its_last_words(act: Act) -> None:
    with act(mode="exit") as stage:
        wait_until(lambda: stage.verdict is Verdict.CRASH_LOOPING, stage.said)
    record = stage.last_record()
    assert record.state is CrawlerState.CRASH_LOOPING
    assert record.last_exit == "crashed (exit code 9)"
    assert record.note == "crashed (exit code 9); 2 failures in a row, each within 10 s"
    assert "Spider opened" in (record.log or "")
    assert record.failed_configs == ("c1",)
    assert any("given up after 2 failures in a row" in error.what for error in stage.registry.errors())


def test_a_crawler_that_cannot_be_launched_is_backed_off_and_given_up_with_the_reason(act: Act, tmp_path: Path) -> None:
    (tmp_path / "crawler.log").symlink_to(tmp_path / "gone" / "crawler.log")  # as a data folder that went away
    with act() as stage:
        wait_until(lambda: stage.verdict is Verdict.CRASH_LOOPING, lambda: str(stage.registry.errors()))
        said = [one.what for one in stage.registry.errors()]
        assert len(said) == 2, "each is told once"
        assert all("it could not be launched: No such file or directory" in one for one in said)


def test_a_crawler_that_cannot_run_as_configured_is_not_tried_again(act: Act) -> None:
    with act(spider="nix") as stage:
        wait_until(lambda: stage.verdict is Verdict.REFUSED, stage.said)
    assert stage.last_record().state is CrawlerState.REFUSED
    assert stage.last_record().error == "trawl: nix: unknown spider 'nix'; there are: toy, toy_two"
    assert len(stage.expired) == 1


def test_a_frozen_crawler_is_replaced(act: Act) -> None:
    with act() as stage:
        first = stage.crawler()
        psutil.Process(first.pid).send_signal(signal.SIGSTOP)
        assert stage.crawler(not_pid=first.pid).last_exit == "hung (SIGKILL)"


def test_a_supervisor_that_lost_its_slot_ends_its_crawler_at_once(act: Act, redis_client: redis.Redis) -> None:
    with act() as stage:
        stage.crawler()
        wait_until(
            lambda: redis_client.delete(SLOT, RECORDS) and stage.registry.acquire("toy", 0, "node-b"), "the slot is another's"
        )
        wait_until(lambda: stage.verdict is Verdict.LOST, stage.said)
    assert redis_client.exists(SLOT)


@pytest.mark.parametrize(("mode", "end"), [("hang", "aborted"), ("freeze", "killed (SIGKILL)")])
def test_a_crawler_that_does_not_stop_in_time_is_ended_and_its_leases_are_taken_back(act: Act, mode: str, end: str) -> None:
    with act(mode=mode) as stage:
        wait_until(lambda: f"INFO: {mode}" in stage.said(), stage.said)
        stage.draining.set()
        wait_until(lambda: stage.verdict is Verdict.DRAINED, stage.said)
    assert stage.expired == [("toy", f"toy/0#{stage.slot.token}.0")]
    assert stage.last_record().last_exit == end


def test_a_crawler_stuck_in_c_code_is_killed_and_its_stacks_are_logged(act: Act) -> None:
    with act(mode="freeze") as stage:
        wait_until(lambda: "hung (SIGKILL)" in str(stage.registry.errors()), stage.said)
    assert "tests/support/toy/spiders.py" in stage.log.path.read_text()


def reload(stage: Stage, reason: str) -> None:
    (view,) = stage.registry.slots({}, stage.registry.crawlers())
    stage.registry.order(view, SlotCommand(word=SlotCommandKind.RELOAD, reason=reason))


def test_an_order_to_reload_is_obeyed_once_by_a_fresh_process_in_the_same_slot(act: Act) -> None:
    with act() as stage:
        first = stage.crawler()
        reload(stage, "roll 1")
        second = stage.crawler(not_pid=first.pid)
        assert (second.last_exit, second.reload, second.restarts, second.token) == ("recycled", "roll 1", 1, first.token)
        assert second.started_at > first.started_at
        reload(stage, "roll 2")
        third = stage.crawler(not_pid=second.pid)
        assert (third.reload, third.restarts, third.quick_ends) == ("roll 2", 2, 0)
    assert stage.expired == []
    assert stage.log.path.read_text().count("Spider closed (shutdown)") == 3
    assert [run.reason for run in stage.runs if run.ended_at] == ["reload: roll 1", "reload: roll 2", "its node is shutting down"]


def test_an_order_to_reload_ends_the_wait_of_a_crawler_that_failed(act: Act) -> None:
    with act(mode="exit") as stage:
        stage.supervisor._config = replace(QUICK, restarts=RestartPolicy(first_wait_s=600, max_quick_failures=3))
        wait_until(lambda: [r for r in stage.heard if r.state is CrawlerState.BACKING_OFF], stage.said)
        reload(stage, "roll 1")
        wait_until(lambda: stage.log.path.read_text().count("Spider opened") == 2, stage.said)


def test_a_crawler_at_its_number_of_pages_finishes_them_and_is_replaced_at_once(act: Act) -> None:
    with act(CRAWLER_MAX_PAGES=20) as stage:
        first = stage.crawler()
        second = stage.crawler(not_pid=first.pid)
        assert second.last_exit == "recycled"
        wait_until(lambda: stage.registry.errors(), stage.said)
        assert sum(bool(run.ended_at) for run in stage.runs) > 1, "the first one was as planned"
        (error,) = stage.registry.errors()
        assert "recycled after short lives, again and again: it has fetched" in error.what
        text = stage.log.path.read_text()
    assert "(CRAWLER_MAX_PAGES): pages in flight get" in text
    assert "Spider closed (shutdown)" in text
    assert stage.expired == []


def test_a_crawler_over_its_soft_memory_limit_finishes_its_pages_and_is_replaced(act: Act) -> None:
    with act(mode="grow", CRAWLER_MEMORY_SOFT_MB=200) as stage:
        first = stage.crawler()
        second = stage.crawler(not_pid=first.pid)
        assert second.last_exit == "recycled"
    assert "MiB of memory are over CRAWLER_MEMORY_SOFT_MB = 200: pages in flight get" in stage.log.path.read_text()
    assert stage.expired == []


def test_a_grace_that_the_node_does_not_count_with_is_reported(act: Act) -> None:
    with act(SHUTDOWN_GRACE=11) as stage:
        stage.crawler()
        wait_until(lambda: stage.registry.errors(), stage.said)
        assert "start workers with TRAWL_SHUTDOWN_GRACE=11" in stage.registry.errors()[0].what


def test_a_memory_limit_below_what_an_empty_crawler_needs_is_refused_by_name(act: Act) -> None:
    with act(CRAWLER_MEMORY_SOFT_MB=20) as stage:
        wait_until(lambda: stage.verdict is Verdict.REFUSED, stage.said)
    assert "CRAWLER_MEMORY_SOFT_MB = 20 is less than a crawler needs before its first page" in (stage.last_record().error or "")


@pytest.mark.parametrize(
    ("mode", "end"),
    [
        ("grow", "out-of-memory"),  # its main thread sees it
        ("burst", "out-of-memory"),  # the kernel refuses it
        ("swell", "out-of-memory (SIGKILL)"),  # its main thread cannot: its supervisor sees it
    ],
)
def test_a_crawler_over_its_hard_memory_limit_is_ended_at_once(act: Act, mode: str, end: str) -> None:
    with act(mode=mode, mb=240 if mode == "swell" else 8, CRAWLER_MEMORY_HARD_MB=250) as stage:
        wait_until(lambda: stage.registry.errors(), stage.said)
        assert stage.registry.errors()[0].what.startswith(end), stage.said()
        assert stage.expired


def test_the_crawler_outlives_a_redis_that_comes_back_without_its_data(act: Act) -> None:
    with RedisServer() as server, act(url=server.url) as stage:
        before = stage.crawler()
        server.kill()
        wait_until(lambda: stage.supervisor._heartbeat.unanswered_s > 1, "a few heartbeats that nobody hears")
        server.start()
        after = stage.crawler()
        assert (after.pid, after.token) == (before.pid, before.token)
        assert stage.registry.acquire("toy", 0, "node-b") is None


def test_no_crawler_is_launched_while_nobody_can_tell_whose_slot_it_is(act: Act, tmp_path: Path) -> None:
    with RedisServer() as server, act(url=server.url, slot_ttl_s=3.0) as stage:
        first = stage.crawler()
        server.kill()
        wait_until(lambda: stage.supervisor._heartbeat.unanswered_s > 3, "Redis is away for longer than a slot lives")
        psutil.Process(first.pid).kill()
        wait_until(lambda: not crawlers_in_the_slot(tmp_path), "the first crawler has ended")
        stays(lambda: not crawlers_in_the_slot(tmp_path), "no crawler is launched", 1.0)
        server.start()
        assert stage.crawler(not_pid=first.pid).restarts == 1


def test_a_crawler_that_takes_its_supervisor_along_each_time_is_given_up_too(act: Act) -> None:
    left = CrawlerRecord(
        spider="toy",
        number=0,
        state=CrawlerState.RUNNING,
        started_at=100.0,
        beat_at=103.0,
        quick_ends=1,
        quick_failures=1,
        config="c1",
        restarts=4,
    )
    with act(before=left) as stage:
        wait_until(lambda: stage.verdict is Verdict.CRASH_LOOPING, stage.said)
    record = stage.last_record()
    assert (record.state, record.restarts) == (CrawlerState.CRASH_LOOPING, 5)
    assert "2 failures in a row" in (record.note or "")
    with act(before=record) as stage:
        assert stage.crawler().quick_failures == 1, "it is tried once more, later"
    with act(before=replace(record, config="another")) as stage:
        assert stage.crawler().quick_failures == 0, "its configuration was changed"
