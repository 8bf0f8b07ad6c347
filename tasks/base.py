"""Base class of all tasks: reports failures, runs each round that beat has sent once, and audits what users change. Also the
routes of tasks to queues, by this application's `celeryconfig.py`, and Celery's internals that the fleet uses.

`celeryconfig.py` is loaded by its place, not by its name: in a user's folder another one may come first on `sys.path`, and it
configures that user's own Celery application. For the same reason it is not entered into `sys.modules`.
`tests/contract/test_celery_internals.py` lists the internals, fails where the source of one has changed, and asserts the
assumptions about the others.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import redis
from celery import Celery, Task, current_task
from celery.backends.asynchronous import E_RETRY_LIMIT_EXCEEDED
from celery.exceptions import Ignore
from celery.worker import state
from kombu.entity import Exchange, Queue
from kombu.exceptions import OperationalError

from redis_components.connection import connect, explain
from redis_components.embedded import redis_url
from redis_components.errors import RedisUnavailable, TrawlError
from redis_components.server.names import service_name
from redis_components.server.printable import in_words, without_secrets
from redis_components.server.scripts import is_servers_state
from redis_components.server.signing import signing_is_on
from workers.fleet.holds import who
from workers.node.host import GivenUp
from workers.state.beats import Schedules
from workers.state.keys import FleetKeys
from workers.state.registry import Registry
from workers.state.reports import Act

from .guard.signed_messages import SIGNATURE, is_first_run

# routes

PLACE = Path(__file__).resolve().parents[1] / "celeryconfig.py"


def _load() -> ModuleType:
    spec = spec_from_file_location("celeryconfig", PLACE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


celeryconfig = _load()


CONTROL = "control"  # the default queue, of tasks that last seconds

# Transport options of a sender that must not wait for a broker that is away: kombu's own tries for ever.
IMPATIENT = {"socket_timeout": 3, "socket_connect_timeout": 2, "max_retries": 0}

NODE_QUEUE_EXPIRES_S = 60.0  # a queue without a consumer for this time is deleted by the broker, with its messages
SERVICE_PREFIX = "crawlers."
EVERY_SERVICE = "crawlers"  # in -Q: all services, also those that are declared later


def route(
    name: str, args: Sequence[Any], kwargs: Mapping[str, Any], options: Mapping[str, Any], **_: Any
) -> dict[str, str] | None:
    """Route `run_crawler` to the nodes that serve its spider, everything else to the default queue; a named queue is obeyed.

    Raises ConfigError for an invalid name of a service.
    """
    if name != "trawl.run_crawler" or "queue" in options:
        return None
    spider = service_name(kwargs.get("spider") or (args[0] if args else ""))
    return {"queue": f"{SERVICE_PREFIX}{spider}", "routing_key": f"{SERVICE_PREFIX}{spider}"}


def node_queue(name: str) -> Queue:
    """Return the queue of one node, for launches that were planned for it.

    Celery's own (`worker_direct`) never expires: each node that is gone for good would leave its queue in Redis. Each node has
    its own exchange, too: kombu forgets the bindings of a whole exchange an hour after the last use of any of them.
    """
    queue = f"node.{name}"
    return Queue(queue, Exchange(queue, type="direct"), routing_key=queue, expires=NODE_QUEUE_EXPIRES_S)  # type: ignore[no-untyped-call]


def drop_inbox(app: Celery, name: str) -> None:
    """Remove the binding of Celery's remote control for a node that was killed: nothing else removes it, and it never expires.

    Raises kombu's OperationalError where the broker is away.
    """
    inbox = Queue(f"{name}.celery.pidbox", Exchange("celery.pidbox", type="fanout"))  # type: ignore[no-untyped-call]
    with app.connection_for_write(transport_options=IMPATIENT) as broker:
        bound: Any = inbox(broker.default_channel)
        bound.declare()  # kombu removes only bindings that it has made itself
        bound.delete()


def services_of(queues: Collection[str]) -> tuple[str, ...]:
    """Return the services that these queues name."""
    return tuple(sorted(queue.removeprefix(SERVICE_PREFIX) for queue in queues if queue.startswith(SERVICE_PREFIX)))


def hosts_crawlers(queues: Collection[str]) -> bool:
    """Return True if a worker that consumes these queues serves a service, or each that is declared."""
    return EVERY_SERVICE in queues or bool(services_of(queues))


ROUND_HEADER = "trawl_round"
"""Header of messages that beat sends: `[entry, fencing token of the beat, when the round was due]`."""


def is_maintenance(name: str, headers: Mapping[str, Any] | None) -> bool:
    """Return True if a message is one of the fleet's own tasks, sent by beat."""
    return name.startswith("trawl.") and ROUND_HEADER in (headers or {})


# Celery's internals


def hosted(task: str) -> int:
    """Return the number of tasks of that name that this worker has taken and not finished."""
    # A list of a dict's values is made in one piece: other threads change it.
    return sum(request.name == task for request in list(state.requests.values()))


def pool_kind(worker: Any) -> str:
    """Return `prefork`, `threads`, `solo`, ..."""
    return str(worker.pool_cls.__module__.rpartition(".")[2])


def instead_of_soft_shutdown(worker: Any, call: Callable[[], None]) -> None:
    """Call `call` at SIGQUIT. Celery has no hook there; it sleeps for the whole of worker_soft_shutdown_timeout, in its signal
    handler.
    """
    worker.wait_for_soft_shutdown = call


def around_reconnection(consumer: Any, wrap: Callable[[Callable[[Exception], None]], Callable[[Exception], None]]) -> None:
    """Replace what a consumer does when its connection to the broker was lost."""
    consumer.on_connection_error_after_connected = wrap(consumer.on_connection_error_after_connected)


def release_place(controller: Any) -> None:
    """Give back the place in the pool of a task that was taken and is not run."""
    if controller.semaphore is not None:
        controller._quick_release()


def gave_up_on_results(error: RuntimeError) -> bool:
    """Return True if Celery's Redis backend has given up reconnecting."""
    return bool(str(error).strip() == E_RETRY_LIMIT_EXCEEDED.strip())


# tasks

logger = logging.getLogger(__name__)

OF_OPERATORS = frozenset(
    f"trawl.{name}"
    for name in (
        *("scale_fleet", "roll_fleet", "pause_fleet", "drain_fleet", "stop_fleet", "resume_fleet"),
        *("pause_site", "drain_site", "resume_site", "crawl_once"),
        *("seed_forums", "rescan_forum", "refresh_posts", "backfill", "seed_urls", "crawl", "cancel_job"),
    )
)

REMOTE = frozenset(
    (
        *("shutdown", "revoke", "revoke_by_stamped_headers", "terminate", "rate_limit", "time_limit"),
        *("pool_grow", "pool_shrink", "pool_restart", "autoscale", "add_consumer", "cancel_consumer"),
    )
)
"""Commands of remote control that change a worker; Flower repeats others every few seconds."""


def note_remote(worker: str, method: str, arguments: Mapping[str, Any] | None) -> None:
    """Record a command to a worker before it is executed: after a shutdown the worker could not."""
    if method in REMOTE:
        given = (f"{name}={value}" for name, value in (arguments or {}).items() if value not in (None, ""))
        what = (method, *without_secrets(list(given)[:20]), f"worker={worker}")
        _keep(Act(at=time.time(), by="remote control (Flower, or a program)", what=what, outcome="heard"))


@contextmanager
def audited(task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[None]:
    """Record that this task ran, when it is an operator's, and its outcome. `task`: a bound Celery task."""
    outcome = "failed"
    try:
        yield
        outcome = "done"
    except Ignore:  # its result comes later
        outcome = "done"
        raise
    finally:
        if task.name in OF_OPERATORS:
            given = (*args, *(f"{name}={value}" for name, value in kwargs.items()))
            by = str(getattr(task.request, "origin", None) or who())  # `gen123@host` of who sent it; itself where it was called
            act = Act(at=time.time(), by=by[:200], what=(task.name, *without_secrets(given[:20])), outcome=outcome)
            _keep(act)


def _keep(act: Act) -> None:
    try:
        act.add_to(connect(), FleetKeys().audit())
    except redis.RedisError as error:
        logger.warning("the audit does not have %s by %s, %s: %s", act.what[0], act.by, act.outcome, error)


_logged: dict[str, str] = {}  # by task, while Redis is away: the last message of this process


class NotSent(RedisUnavailable, OperationalError):
    """A command was not sent: the broker, or the Redis for results, is away or refuses. Send it again when it is back."""


class FleetTask(Task):
    """A task whose failures are shown by `trawl status`. A TrawlError is one line in the log, however often it comes;
    anything else is a traceback.
    """

    throws = (TrawlError,)
    Request = "tasks.guard.worker:Request"
    Strategy = "tasks.guard.worker:strategy"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the task, unless its round or its signed message was started already: it was sent or delivered twice, by a beat
        that was replaced, or put into its queue again by a reader of the queue.

        Raises RedisUnavailable where Redis is away or refuses, also in the middle: one line in the log, and beat sends it again.
        """
        try:
            return self._run_once(*args, **kwargs)
        except redis.RedisError as error:
            if not is_servers_state(error):
                raise
            raise explain(error, redis_url()) from error

    def _run_once(self, *args: Any, **kwargs: Any) -> Any:
        sent_by_beat = getattr(self.request, ROUND_HEADER, None)
        if sent_by_beat:
            name, token, due = sent_by_beat
            if not Schedules(connect()).begin(name, token, due):
                logger.info("%s: this round of %s was started already", self.name, name)
                return None
            return super().__call__(*args, **kwargs)
        self._refuse_replay()
        with audited(self, args, kwargs):
            return super().__call__(*args, **kwargs)

    def _refuse_replay(self) -> None:
        """Raise Ignore for a signed message that was run before: its result, where it has one, remains."""
        signature = getattr(self.request, SIGNATURE, None)
        if signature is None or not signing_is_on() or is_first_run(connect(), str(signature)):
            return
        what = f"a message that was run before ({self.request.id}) was put into its queue again, and was not run"
        Registry(connect()).report_error(self.name, what)
        logger.error("%s: %s", self.name, what)
        raise Ignore(what)

    def apply_async(self, *args: Any, **kwargs: Any) -> Any:
        """Send it. Raises NotSent, after a second or a few, where the broker or the results' Redis is away or refuses, and
        ConfigError where the keys that sign it cannot be read.
        """
        signing_is_on()
        try:
            return super().apply_async(*args, **kwargs)
        except (OperationalError, redis.RedisError) as error:
            raise NotSent(f"{self.name} was not sent: {in_words(error)}") from error
        except RuntimeError as error:
            if not gave_up_on_results(error):
                raise
            away = error.__cause__ or error.__context__
            reason = in_words(away) if isinstance(away, redis.RedisError) else "Redis does not answer"
            raise NotSent(f"{self.name} was not sent: {reason}") from error

    def on_failure(self, exc: Exception, *_: Any) -> None:
        if isinstance(exc, GivenUp):  # logged by its supervisor
            return
        what = in_words(exc)
        try:
            is_news = Registry(connect()).report_error(self.name, what)
        except (redis.RedisError, TrawlError):  # without Redis there is no list to put it in
            is_news = _logged.get(self.name) != what
            _logged[self.name] = what
        if is_news and isinstance(exc, TrawlError):
            logger.warning("%s: %s", self.name, what)


_NOTHING = ("None", "{}", "[]", "0", "''")


def is_worth_a_line(record: logging.LogRecord) -> bool:
    """Return False for a line of Celery on a task of beat that has done nothing, of which there are hundreds a minute, and for an
    expected failure of a Trawl task, which `on_failure` logs, once only. A filter of logging.
    """
    data = getattr(record, "data", None)
    if isinstance(record.args, dict) and record.args.get("return_value") in _NOTHING:
        return not (str(record.args.get("name", "")).startswith("trawl.") and _is_of_beat())
    if not isinstance(data, dict) or data.get("description") != "raised expected":
        return True
    return not str(data.get("name", "")).startswith("trawl.")


def _is_of_beat() -> bool:
    return bool(current_task) and getattr(current_task.request, ROUND_HEADER, None) is not None
