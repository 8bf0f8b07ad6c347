"""Routes tasks to queues, by this application's `celeryconfig.py`, which is loaded from the folder above this package.

By its place, not by its name: in a user's folder another `celeryconfig.py` may come first on `sys.path`, and it configures that
user's own Celery application. For the same reason it is not entered into `sys.modules`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from celery import Celery
from kombu.entity import Exchange, Queue

from redis_components.server.names import service_name

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
