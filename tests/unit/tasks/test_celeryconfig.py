"""celeryconfig.py: the rules that a long-lived fleet on Redis stands on, and what is said about a wrong environment."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from celery.app.amqp import Queues
from kombu.entity import Queue

from tasks.app import HEARTBEAT_S, _without_neighbours
from tests.support import warm_start
from tests.support.fleet import ROOT


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """celeryconfig as a process reads it whose Redis is not there yet."""
    monkeypatch.setenv("TRAWL_REDIS_URL", "redis://127.0.0.1:1/0")
    monkeypatch.setenv("TRAWL_FLEET", "forum_list=1,forum_detail=6")
    monkeypatch.delitem(sys.modules, "celeryconfig", raising=False)
    yield importlib.import_module("celeryconfig")
    sys.modules.pop("celeryconfig", None)


def tasks_of(app_module: str = "tasks") -> set[str]:
    app = importlib.import_module(app_module).app
    app.loader.import_default_modules()
    return {name for name in app.tasks if name.startswith("trawl.")}


def test_nothing_but_json_is_accepted(config: ModuleType) -> None:
    assert config.accept_content == ["json"]
    assert {config.task_serializer, config.result_serializer, config.event_serializer} == {"json"}


def test_every_task_has_a_time_limit_but_the_one_that_lives_as_long_as_its_node(config: ModuleType) -> None:
    app = importlib.import_module("tasks").app
    unlimited = tasks_of() - {
        name for name in tasks_of() if 0 < (app.tasks[name].soft_time_limit or 0) < app.tasks[name].time_limit
    }
    assert unlimited - set(config.task_annotations) == {"trawl.run_crawler", "trawl.consume_items"}
    assert not hasattr(config, "task_time_limit")  # it would be the pool's, and so run_crawler's
    for limits in config.task_annotations.values():
        assert 0 < limits["soft_time_limit"] < limits["time_limit"]


def test_no_task_is_acknowledged_late_rate_limited_or_retried(config: ModuleType) -> None:
    assert config.task_acks_late is False
    app = importlib.import_module("tasks").app
    for name in tasks_of():
        task = app.tasks[name]
        assert not task.acks_late
        assert task.rate_limit is None
        assert not getattr(task, "autoretry_for", None)


def test_what_beat_sends_exists(config: ModuleType) -> None:
    assert {entry["task"] for entry in config.beat_schedule.values()} <= tasks_of()
    assert config.beat_scheduler == "tasks.beat.leader:LeaderScheduler"


def test_an_operators_own_tasks_are_imported(config: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_TASK_MODULES", "tests.support.own_tasks, json")
    assert config.include[-2:] == ("tests.support.own_tasks", "json")


def test_control_goes_before_crawlers_whatever_q_says() -> None:
    from types import SimpleNamespace

    from tasks.app import _control_first

    queues = Queues([Queue(name) for name in ("crawlers.a", "control", "crawlers.b")])
    queues.select(["crawlers.b", "control", "crawlers.a"])
    _control_first(SimpleNamespace(app=SimpleNamespace(amqp=SimpleNamespace(queues=queues))))
    assert list(queues.consume_from) == ["control", "crawlers.b", "crawlers.a"]


def test_each_service_has_its_queue_and_control_comes_first(config: ModuleType) -> None:
    assert [queue.name for queue in config.task_queues] == ["control", "crawlers", "crawlers.forum_detail", "crawlers.forum_list"]


def test_the_pool_holds_the_whole_fleet_and_some_processes_for_short_tasks(config: ModuleType) -> None:
    from tasks.node import room_for_consumers, room_for_crawlers, room_for_small_crawls
    from workers.environment.machine import cores, memory_bytes, places

    assert config.worker_concurrency == max(7, places(cores(), memory_bytes())) + config.RESERVED_PROCESSES
    assert room_for_crawlers(12, {"control", "crawlers.forum_list"}) == 7
    assert room_for_small_crawls(12, {"control", "crawlers.forum_list"}) == 1
    assert room_for_small_crawls(5, {"control"}) == 1
    assert room_for_small_crawls(9, {"control"}) == 5
    assert [room_for_consumers(n, {"control"}) for n in (1, 2)] == [0, 1], "the queue is never without a process"
    assert [room_for_consumers(n, {"control", "crawlers.forum_list"}) for n in (2, 3)] == [0, 1]
    assert room_for_small_crawls(8, {"once"}) == 8  # a node that does nothing else
    assert room_for_crawlers(10, {"crawlers.forum_list"}) == 10  # a node that serves no short tasks keeps nothing back
    assert room_for_crawlers(2, {"control"}) == 1


def test_crawlers_are_routed_to_the_nodes_that_serve_them() -> None:
    from tasks.base import route

    assert route("trawl.seed_forums", (), {}, {}) is None
    for args, kwargs in (((("forum_list"), 0), {}), ((), {"spider": "forum_list", "number": 0})):
        chosen = route("trawl.run_crawler", args, kwargs, {})
        assert chosen is not None
        assert chosen["queue"] == "crawlers.forum_list"


def run(code: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return warm_start.run(
        [sys.executable, "-W", "error", *code],
        family="celery",
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.processes
def test_importing_tasks_opens_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    data = tmp_path_factory.mktemp("data") / "not-there"
    done = run(["-c", "import tasks; print(tasks.app.main)"], TRAWL_REDIS_BIN="/nowhere", TRAWL_DATA_DIR=str(data))
    assert (done.stdout, done.stderr) == ("trawl\n", "")
    assert not data.exists()


NOTHING_WORKS = {
    "TRAWL_REDIS_URL": "localhost:6379",
    "TRAWL_FLEET": "forum_list",
    "TRAWL_NODE_CRAWLERS": "many",
    "TRAWL_NAMESPACE": "a b",
    "TRAWL_SHUTDOWN_GRACE_S": "long",
    "TRAWL_TASK_MODULES": "nix.tasks",
    "TRAWL_BROKER_URL": "redis+cluster://nix",
}


@pytest.mark.processes
@pytest.mark.parametrize("environment", [{"TRAWL_REDIS_URL": ""}, NOTHING_WORKS])
def test_importing_celeryconfig_and_reading_its_fixed_settings_opens_and_checks_nothing(
    environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = tmp_path_factory.mktemp("data") / "not-there"
    code = (
        "import celeryconfig, tasks; print('broker_url' in dir(celeryconfig), tasks.app.conf.task_default_queue, "
        "tasks.app.conf.beat_schedule['store_items']['schedule'])"
    )
    done = run(["-c", code], TRAWL_REDIS_BIN="/nowhere", TRAWL_DATA_DIR=str(data), **environment)
    assert (done.stdout, done.stderr) == ("True control 1.0\n", "")
    assert not data.exists()


@pytest.mark.processes
def test_celerys_help_starts_no_server(tmp_path_factory: pytest.TempPathFactory) -> None:
    data = tmp_path_factory.mktemp("data") / "not-there"
    environment = {"TRAWL_REDIS_URL": "", "TRAWL_REDIS_BIN": "/nowhere", "TRAWL_DATA_DIR": str(data)}
    done = run(["-m", "celery", "-A", "tasks", "worker", "--help"], **environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert "check-environment" not in done.stdout
    assert not data.exists()
    done = run(["-m", "celery", "-A", "tasks", "beat"], **environment)  # a program that starts needs one
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "TRAWL_REDIS_BIN" in done.stderr


@pytest.mark.processes
def test_a_plain_process_that_sends_a_task_starts_the_projects_own_server(tmp_path_factory: pytest.TempPathFactory) -> None:
    data = tmp_path_factory.mktemp("data") / "made"
    code = (
        "from tasks import app, seed_forums; seed_forums.delay(['f1'], site='demo');"
        "from redis_components.connection import connect; print(connect().llen('control'))"
    )
    done = run(["-c", code], TRAWL_REDIS_URL="", TRAWL_DATA_DIR=str(data))
    assert (done.stdout, done.stderr) == ("1\n", "")
    assert data.exists()


@pytest.mark.processes
def test_a_celeryconfig_of_the_current_folder_is_not_taken_for_the_fleets(tmp_path: Path) -> None:
    (tmp_path / "celeryconfig.py").write_text("task_default_queue = 'theirs'\n")
    code = "import celeryconfig, tasks; print(celeryconfig.task_default_queue, tasks.app.conf.task_default_queue)"
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "theirs control\n"


@pytest.mark.processes
@pytest.mark.parametrize(
    ("command", "name", "value", "said"),
    [
        ("worker", "TRAWL_FLEET", "forum_list", "TRAWL_FLEET: 'forum_list' is not of the form spider=number"),
        ("beat", "TRAWL_NODE_CRAWLERS", "many", "TRAWL_NODE_CRAWLERS='many': the crawlers of one node are a whole number"),
        ("flower", "TRAWL_REDIS_URL", "localhost:6379", "localhost:6379 is not a Redis URL"),
    ],
)
def test_a_wrong_environment_is_one_line_and_exit_code_1(command: str, name: str, value: str, said: str) -> None:
    done = run(["-m", "celery", "-A", "tasks", command], **{"TRAWL_REDIS_URL": "redis://127.0.0.1:1", name: value})
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: {said}")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.processes
def test_a_password_that_redis_refuses_is_one_line_and_exit_code_1(redis_url: str) -> None:
    done = run(["-m", "celery", "-A", "tasks", "worker"], TRAWL_REDIS_URL=f"redis://:wrong@{redis_url.rpartition('@')[2]}")
    assert done.returncode == 1
    assert "does not accept the password" in done.stderr
    assert "wrong" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_worker_tells_flower_that_it_lives_as_often_as_the_fleet_says_unless_its_command_says_otherwise() -> None:
    plain, told = SimpleNamespace(options={"heartbeat_interval": None}), SimpleNamespace(options={"heartbeat_interval": 1.0})
    for worker in (plain, told):
        _without_neighbours(sender=worker)
    assert plain.options == {"heartbeat_interval": HEARTBEAT_S, "without_gossip": True, "without_mingle": True}
    assert told.options["heartbeat_interval"] == 1.0
