"""What the fleet assumes of the installed Celery and kombu: this file fails first when one of them changes."""

from __future__ import annotations

import inspect
import re
from hashlib import sha1
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest
from billiard import process
from celery import Celery
from celery.backends import asynchronous
from celery.backends.redis import RedisBackend
from celery.concurrency import get_implementation
from celery.worker import components, state

from tasks import base
from tests.contract.assumptions import ASSERTED, DECLARED, asserts

ROOT = Path(__file__).parents[2]


RELIES_ON = {
    "kombu.transport.redis:Channel._brpop_read": "86494f0bf4af",
    "kombu.transport.redis:Channel._receive_one": "b2523c2f6e6e",
    "kombu.transport.redis:Channel._deliver_fanout_message": "d4187f4c61cc",
    "kombu.transport.redis:Channel._flush_brpop_reauth": "aaf8e7eb0ef4",
    "kombu.transport.redis:Channel._restore": "fea4e916763a",
    "kombu.transport.redis:Channel.get_table": "72dc9bf3074c",
    "kombu.transport.virtual.base:Channel._restore": "524530d090a0",
    "kombu.transport.virtual.base:Channel.basic_consume": "7de5ff6da7c1",
    "kombu.transport.virtual.base:Message.__init__": "4d82dad58ffe",
    "kombu.transport.virtual.base:Transport._deliver": "fb2afc873504",
    "kombu.connection:Connection.get_transport_cls": "ad88ed36b363",
    "kombu.connection:Connection._info": "f20a54ce04d0",
    "kombu.connection:Connection.Pool": "d5369eb1afe9",
    "kombu.connection:ConnectionPool.new": "9e7acbed0a89",
    "kombu.messaging:Consumer._receive_callback": "8854817b41cb",
    "kombu.pidbox:Node.handle_message": "70eeb4fd7aec",
    "kombu.pidbox:Node.dispatch": "571a562c8bb3",
    "kombu.pidbox:Mailbox.producer_or_acquire": "989ece099d30",
    "kombu.pidbox:Mailbox._publish": "e051f8d8022c",
    "celery.worker.pidbox:Pidbox.on_message": "334d04759317",
    "celery.worker.consumer:Consumer.create_task_handler": "af9fb2205efa 68a73894ead8",
    "celery.worker.consumer:Consumer.on_decode_error": "f069c74c53a0",
    "celery.worker.consumer:Consumer.on_unknown_message": "ef7095171e20",
    "celery.worker.consumer:Consumer.on_unknown_task": "742a6eac2db9",
    "celery.worker.consumer:Consumer.on_invalid_task": "fe7b892b7b14",
    "celery.worker.request:Request.__init__": "3f014fd57c98",
    "celery.worker.request:Request.on_failure": "4d6432da018e 9db11eea7568",
    "celery.worker.consumer:Consumer.on_connection_error_after_connected": "a1feb13e4a2d e7544a8c7b20",
    "celery.worker.worker:WorkController.wait_for_soft_shutdown": "a080e848cf94",
    "celery.worker.components:Pool.create": "1bf3c6fb29b3 28d93dc27012",
    "celery.backends.asynchronous:BaseResultConsumer.drain_events_until": "f476c17c27ad",
    "celery.beat:Scheduler.setup_schedule": "b77356c45b67",
    "celery.beat:Scheduler.tick": "4b3b53f52662 32a2f4759803",
    "celery.beat:Scheduler.close": "ba886b6fd755 d841c0f05efb",
    "celery.worker.state:task_ready": "3648b78f40f8 242d12f27f06",
    "celery.worker.strategy:default": "0f2ade5e960b ec8fc307c7e7",
}
"""`module:name` -> the beginnings of its source's SHA-1 in the versions that were read (Celery 5.6.3 and 5.7.0, kombu 5.7.0)."""


@pytest.mark.parametrize("name", RELIES_ON)
def test_a_function_that_the_fleet_relies_on_is_the_one_that_was_read(name: str) -> None:
    module, _, path = name.partition(":")
    function = attrgetter(path)(import_module(module))
    digest = sha1(inspect.getsource(function).encode(), usedforsecurity=False).hexdigest()[:12]
    assert digest in RELIES_ON[name].split(), f"{name} has changed: compare it with tasks/, then write {digest!r} here"


@asserts("celery", "worker.state.requests")
def test_a_workers_tasks_are_known_by_id_with_their_names() -> None:
    assert isinstance(state.requests, dict)
    assert "requests" in inspect.getsource(state.task_reserved) + inspect.getsource(state)
    assert base.hosted("trawl.run_crawler") == 0


@asserts("celery", "controller._quick_release")
def test_a_place_in_the_pool_is_given_back_by_the_semaphore() -> None:
    assert "w._quick_release = w.semaphore.release" in inspect.getsource(components.Pool.create)


@asserts("celery", "worker.pool_cls")
@pytest.mark.parametrize("kind", ["prefork", "threads", "solo"])
def test_a_pool_is_named_by_its_module(kind: str) -> None:
    worker = type("Worker", (), {"pool_cls": get_implementation(kind)})
    assert base.pool_kind(worker) == {"threads": "thread"}.get(kind, kind)


@asserts("celery", "billiard.process.current_process")
def test_the_process_that_is_no_child_of_a_pool_is_the_main_one() -> None:
    assert process.current_process().name == "MainProcess"


@asserts("celery", "backends.asynchronous.E_RETRY_LIMIT_EXCEEDED")
def test_a_redis_backend_that_gives_up_raises_this_text() -> None:
    assert asynchronous.E_RETRY_LIMIT_EXCEEDED.strip().startswith("Retry limit exceeded")
    assert "E_RETRY_LIMIT_EXCEEDED" in inspect.getsource(inspect.getmodule(RedisBackend)) + inspect.getsource(asynchronous)
    assert base.gave_up_on_results(RuntimeError(asynchronous.E_RETRY_LIMIT_EXCEEDED))
    assert not base.gave_up_on_results(RuntimeError("other"))


def test_every_declared_assumption_is_asserted_and_no_other() -> None:
    assert ASSERTED["celery"] == DECLARED["celery"].keys()


def test_what_is_overridden_or_called_of_celery_is_declared() -> None:
    """Private names of the library's classes that files of `tasks/` override or call."""
    declared = " ".join([*RELIES_ON, *DECLARED["celery"]])
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
