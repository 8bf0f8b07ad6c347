"""What the fleet assumes of the installed Celery and kombu: this file fails first when one of them changes."""

from __future__ import annotations

import inspect
import re
from hashlib import sha1
from pathlib import Path

import pytest
from billiard import process
from celery import Celery
from celery.backends import asynchronous
from celery.backends.redis import RedisBackend
from celery.concurrency import get_implementation
from celery.worker import components, state
from kombu.transport import redis as over_redis

from redis_components.errors import IncompatibleEngine
from tasks import celery_internals
from tests.contract.assumptions import ASSERTED, DECLARED, asserts

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", celery_internals.RELIES_ON)
def test_a_function_that_the_fleet_relies_on_is_the_one_that_was_read(name: str) -> None:
    digest = sha1(inspect.getsource(celery_internals.function_of(name)).encode(), usedforsecurity=False).hexdigest()[:12]
    known = celery_internals.RELIES_ON[name].split()
    assert digest in known, f"{name} has changed: compare it with tasks/, then write {digest!r} there"


def test_a_celery_without_one_of_them_is_refused_with_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    celery_internals.check_internals()
    monkeypatch.delattr(over_redis.Channel, "_brpop_read")
    with pytest.raises(IncompatibleEngine, match=r"Channel\._brpop_read is gone, .* constraints\.txt"):
        celery_internals.check_internals()


@asserts("celery", "worker.state.requests")
def test_a_workers_tasks_are_known_by_id_with_their_names() -> None:
    assert isinstance(state.requests, dict)
    assert "requests" in inspect.getsource(state.task_reserved) + inspect.getsource(state)
    assert celery_internals.hosted("trawl.run_crawler") == 0


@asserts("celery", "controller._quick_release")
def test_a_place_in_the_pool_is_given_back_by_the_semaphore() -> None:
    assert "w._quick_release = w.semaphore.release" in inspect.getsource(components.Pool.create)


@asserts("celery", "worker.pool_cls")
@pytest.mark.parametrize("kind", ["prefork", "threads", "solo"])
def test_a_pool_is_named_by_its_module(kind: str) -> None:
    worker = type("Worker", (), {"pool_cls": get_implementation(kind)})
    assert celery_internals.pool_kind(worker) == {"threads": "thread"}.get(kind, kind)


@asserts("celery", "billiard.process.current_process")
def test_the_process_that_is_no_child_of_a_pool_is_the_main_one() -> None:
    assert process.current_process().name == "MainProcess"


@asserts("celery", "backends.asynchronous.E_RETRY_LIMIT_EXCEEDED")
def test_a_redis_backend_that_gives_up_raises_this_text() -> None:
    assert asynchronous.E_RETRY_LIMIT_EXCEEDED.strip().startswith("Retry limit exceeded")
    assert "E_RETRY_LIMIT_EXCEEDED" in inspect.getsource(inspect.getmodule(RedisBackend)) + inspect.getsource(asynchronous)
    assert celery_internals.gave_up_on_results(RuntimeError(asynchronous.E_RETRY_LIMIT_EXCEEDED))
    assert not celery_internals.gave_up_on_results(RuntimeError("other"))


def test_every_declared_assumption_is_asserted_and_no_other() -> None:
    assert ASSERTED["celery"] == DECLARED["celery"].keys()


def test_what_is_overridden_or_called_of_celery_is_declared() -> None:
    """Private names of the library's classes that files of `tasks/` override or call."""
    declared = " ".join([*celery_internals.RELIES_ON, *DECLARED["celery"]])
    overridden = {
        name
        for path in (ROOT / "tasks" / "guard").glob("*.py")
        for name in re.findall(r"super\(\)\.(\w+)\(", path.read_text("utf-8"))
        if name != "__init__"
    }
    assert len(overridden) > 5, "the pattern still finds them"
    assert {name for name in overridden if name not in declared} == set()


def test_a_program_can_be_made_with_the_guarded_parts() -> None:
    with Celery(amqp="tasks.guard.transport:AMQP", control="tasks.guard.worker:Control", set_as_current=False) as app:
        assert app.amqp is not None
