"""Every Celery setting that differs from the default, with its reason.

Importing this module reads and opens nothing. The settings that follow from the environment (`TRAWL_*`) are functions
under `@_when_read`: Celery gets their values through the module's `__getattr__` when it reads one of them. With the broker's
address, which starts the project's own Redis, all of them are checked.

The rules behind them, measured with Celery 5.7 on Redis:
- Messages are gone when a worker takes them, and nothing relies on redelivery: what is missing, `reconcile_fleet` sends again.
- No `acks_late`, no ETA or countdown, no `retry()`, no `rate_limit`: all of them keep a message for later in the memory of one
  worker, and it is lost with that.
- `run_crawler` and `consume_items` live as long as their node. All other tasks last seconds and have time limits.

TRAWL_FLEET names the services and their size, TRAWL_NODE_CRAWLERS how many crawlers this node may host; see
`workers/fleet/sizes.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kombu.entity import Queue

from redis_components.embedded import redis_url
from redis_components.server.names import fleet_namespace
from redis_components.server.signing import signing_is_on
from redis_components.server.variables import load_env_file
from workers.application import application
from workers.environment.variables import Fleet
from workers.fleet.sizes import default_fleet, node_crawlers
from workers.node.worker_setup import broker_of, named_broker
from workers.process.exit_kinds import node_s, shutdown_grace

_Setting = Callable[[], Any]
_FROM_ENVIRONMENT: dict[str, _Setting] = {}


def _when_read(setting: _Setting) -> _Setting:
    _FROM_ENVIRONMENT[setting.__name__] = setting
    return setting


def __getattr__(name: str) -> Any:
    # Not under their names in the module: there Celery would find the functions.
    if (setting := _FROM_ENVIRONMENT.get(f"_{name}")) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    load_env_file()
    return setting()


def __dir__() -> list[str]:
    return sorted({*globals(), *(name.removeprefix("_") for name in _FROM_ENVIRONMENT)})


FLEET_TASKS = 4  # processes for the fleet's own tasks: one that writes, one that seeds, one that reconciles, one that consumes
RESERVED_PROCESSES = FLEET_TASKS + 1  # and one for a small crawl (`crawl_once`); more of those find no room
IMPATIENT_RETRY = {"max_retries": 2, "interval_start": 0.0, "interval_step": 0.2, "interval_max": 0.5}
BEAT = {  # s; the application adds its own
    "reconcile_fleet": 2.0,
    "probe_sites": 5.0,
    "sample_fleet": 60.0,
}

# Broker and results: the Redis that everything else is in, too.


@_when_read
def _broker_url() -> str:
    """TRAWL_BROKER_URL, TRAWL_REDIS_URL, else the project's own server, which is started here."""
    check()
    return broker_of(redis_url()).url


_FROM_ENVIRONMENT["_result_backend"] = _broker_url


def check() -> None:
    """Read the other settings of the environment, and the keys that sign messages: a program that sends or receives messages
    fails before the first one. Raises ConfigError.
    """
    for setting in _FROM_ENVIRONMENT.values():
        if setting is not _broker_url:
            setting()
    signing_is_on()


@_when_read
def _broker_use_ssl() -> dict[str, Any] | bool:
    return named_broker().tls or False


@_when_read
def _redis_backend_use_ssl() -> dict[str, Any]:
    return named_broker().tls or {}


broker_connection_retry_on_startup = True  # a worker may be started before its Redis is
broker_channel_error_retry = True  # Redis may answer with errors (its disk is full): a worker waits (tasks/refusing_broker.py)
broker_connection_max_retries = None  # the default gives up after 100 tries: a worker has to outlast any outage
_TRANSPORT = {
    # A message is gone when a worker has taken it. Else kombu keeps a copy until it is acknowledged, two round trips each, and
    # a worker that holds one when Redis goes away ends, or lives on half dead (kombu 5.7). So there is no visibility timeout,
    # either, after which a task would be run once more. Lost is what a killed worker had taken and not begun: it is sent again.
    "ack_emulation": False,
    "socket_timeout": 15,  # s; the default waits for ever for a Redis that hangs
    "socket_connect_timeout": 5,  # s
    "socket_keepalive": True,  # notice a peer that vanished without a word
    "health_check_interval": 25,  # s; the same for idle connections
    "queue_order_strategy": "priority",  # queues in their order: control before crawlers, always (tasks/app.py)
}
# Who sends a command hears within a second that Redis is away (tasks/base.py): the default asks 20 times, for 19 s. Workers do.
task_publish_retry_policy = IMPATIENT_RETRY


@_when_read
def _broker_transport_options() -> dict[str, Any]:
    return {**_TRANSPORT, **_connection_options()}


@_when_read
def _result_backend_transport_options() -> dict[str, Any]:
    return {**_connection_options(), "retry_policy": IMPATIENT_RETRY}


def _connection_options() -> dict[str, Any]:
    namespace = fleet_namespace()  # several fleets in one Redis: each has its own queues and results
    return named_broker().options | ({"global_keyprefix": f"{namespace}:"} if namespace else {})


redis_socket_timeout = 15.0  # s; the same for results
redis_socket_connect_timeout = 5.0  # s
redis_backend_health_check_interval = 25


@_when_read
def _redis_socket_keepalive() -> bool:
    return not named_broker().is_socket


# Messages: JSON and nothing else. Pickle would let anyone who can write to Redis run code in a worker.
accept_content = ["json"]
task_serializer = "json"
result_serializer = "json"
event_serializer = "json"

# Queues: each service has its own, so that nodes can be kept for one of them (`celery -A tasks worker -Q crawlers.forum_list`).
# `crawlers` carries nothing: a worker that consumes it serves every service, also those that are declared later.
task_default_queue = "control"


@_when_read
def _task_queues() -> list[Queue]:
    names = ("control", "crawlers", *(f"crawlers.{service}" for service in sorted(default_fleet())))
    return [Queue(name, routing_key=name) for name in names]  # type: ignore[no-untyped-call]


@_when_read
def _include() -> tuple[str, ...]:
    return (*application().task_modules(), *Fleet.read().task_modules)  # the operator's own


task_routes = ("tasks.base.route",)  # run_crawler to the queue of its service, the rest to control
task_create_missing_queues = True  # a service may be named by one node's TRAWL_FLEET before another has restarted

# Delivery.
worker_consumer = "tasks.guard.worker:Consumer"  # a message that cannot be read or run is set aside, ends no worker
task_acks_late = False  # on another broker a late acknowledgement means: run again, while it still runs, when that loses patience
worker_prefetch_multiplier = 1  # a message fetched too early is stuck behind a task of days, while other nodes are free
worker_disable_prefetch = True  # a multiplier of 1 still fetches one too many; this fetches only for a process that is free
worker_cancel_long_running_tasks_on_connection_loss = False  # crawlers outlive an outage of the broker

# Results: who sends a command may ask for its answer; what beat sends has none.
task_ignore_result = True  # tasks that people send say `ignore_result=False`
result_expires = 3600  # s; 300 bytes each in the Redis that also holds the queues

# Seen by Flower.
worker_send_task_events = True  # as `-E`
task_send_sent_event = True  # also those that nobody has taken yet
task_track_started = True  # a crawler's task is never finished: "started" is what there is to see
# Left as they are: event_queue_expires (60 s) and control_queue_expires (10 s). The queues of a Flower or an `inspect` that was
# killed vanish, with what is in them.


# Processes.
@_when_read
def _worker_concurrency() -> int:
    return node_crawlers() + RESERVED_PROCESSES  # a crawler occupies the process that supervises it, for its life


@_when_read
def _worker_soft_shutdown_timeout() -> float:
    return node_s(shutdown_grace())  # s; SIGQUIT: crawlers may finish their pages; the node is gone as soon as they have


worker_proc_alive_timeout = 30.0  # s; the default of 4 kills pool processes that start slowly on a busy machine
# SIGTERM, too, lets crawlers finish their pages: REMAP_SIGTERM is not needed, in no container either.
# Leaks of a database driver, or of an operator's own tasks. Looked at between two tasks: a process that hosts a crawler, whose
# task lasts for days, is never replaced for it; crawlers have their own limits (CRAWLER_*).
worker_max_memory_per_child = 400_000  # KiB, of resident memory; a new one has 60,000
worker_max_tasks_per_child = 10_000  # some hours; a new one costs 0.1 s

# Time limits: (soft, hard) for each task that lasts seconds. The hard one gives 0.1 s before SIGKILL. run_crawler and
# consume_items have none.
SHORT = {"soft_time_limit": 50, "time_limit": 60}
task_annotations = {
    f"trawl.{name}": SHORT
    for name in (
        *("seed_urls", "reconcile_fleet", "probe_sites", "sample_fleet", "scale_fleet", "roll_fleet", "crawl", "cancel_job"),
        *("pause_fleet", "drain_fleet", "stop_fleet", "resume_fleet", "pause_site", "drain_site", "resume_site"),
    )
}

task_annotations["trawl.install_version"] = {"soft_time_limit": 600, "time_limit": 660}  # pip downloads

task_annotations["trawl.run_group"] = {"soft_time_limit": 700, "time_limit": 760}  # a project of thousands of modules is imported

# A small crawl ends by its own timeout, of an hour at most, and has 40 s to close then. These are for one that does not.
task_annotations["trawl.crawl_once"] = {"soft_time_limit": 3700, "time_limit": 3800}


# Beat. What it sends until `trawl schedule` says otherwise; messages expire, and leave no results (tasks/beat/leader.py).
@_when_read
def _beat_schedule() -> dict[str, Any]:
    every = BEAT | {name: one.every_s for name, one in application().schedule().items()}
    return {name: {"task": f"trawl.{name}", "schedule": every_s} for name, every_s in every.items()}


beat_scheduler = "tasks.beat.leader:LeaderScheduler"  # any number of beats, one sends; `trawl schedule` changes what
beat_max_loop_interval = 1  # s; the lock is renewed at each look
# Left as it is, off: beat_enable_remote_control. Its thread would print a traceback at each outage of the broker, and knows only
# that beat ticks; `trawl status` shows that it sends.

timezone = "UTC"
