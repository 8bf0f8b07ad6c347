"""Every Celery setting that differs from the default, with its reason. Read when Celery first needs it, not with `import tasks`.

The rules behind them, measured with Celery 5.7 on Redis:
- Messages are gone when a worker takes them, and nothing relies on redelivery: what is missing, `reconcile_fleet` sends again.
- No `acks_late`, no ETA or countdown, no `retry()`, no `rate_limit`: all of them keep a message for later in the memory of one
  worker, and it is lost with that.
- `run_crawler` lives as long as its node. All other tasks last seconds and have time limits.

TRAWL_FLEET names the services and their size, TRAWL_NODE_CRAWLERS how many crawlers this node may host; see `workers/fleet.py`.
"""

from __future__ import annotations

from click import ClickException
from kombu.entity import Queue

from redis_components.embedded import redis_url
from redis_components.errors import TrawlError
from redis_components.namespace import fleet_namespace
from workers.broker import broker_of
from workers.fleet import default_fleet, node_crawlers
from workers.grace import node_s, shutdown_grace
from workers.log_stream import stream_level
from workers.logs import LogLimits
from workers.own_tasks import own_tasks
from workers.reach_redis import check_login
from workers.run_book import history_days

try:
    _broker, _services, _crawlers = broker_of(check_login(redis_url())), sorted(default_fleet()), node_crawlers()
    _namespace, _grace_s = fleet_namespace(), node_s(shutdown_grace())
    include = own_tasks()  # TRAWL_TASKS: modules with an operator's own tasks
    stream_level(), LogLimits.from_environment(), history_days()  # read by each supervisor; what is wrong shall be said now
except TrawlError as error:
    raise ClickException(str(error)) from error  # Celery's command line shows it as one line, exit code 1

FLEET_TASKS = 3  # processes for the tasks that last seconds: one that writes, one that seeds, one that reconciles
RESERVED_PROCESSES = FLEET_TASKS + 1  # and one for a small crawl (`crawl_once`); more of those find no room
BEAT = {  # s
    "seed_forums": 5.0,
    "recheck_threads": 30.0,
    "reconcile_fleet": 2.0,
    "store_items": 1.0,
    "probe_sites": 5.0,
    "prune_raw_pages": 3600.0,
}

# Broker and results: the Redis that everything else is in, too.
broker_url = _broker.url  # TRAWL_BROKER_URL, TRAWL_REDIS_URL, else the project's own server, which is started here
result_backend = _broker.results
broker_use_ssl = _broker.tls or False
redis_backend_use_ssl = _broker.tls or {}
broker_connection_retry_on_startup = True  # a worker may be started before its Redis is
broker_connection_max_retries = None  # the default gives up after 100 tries: a worker has to outlast any outage
broker_transport_options = {
    # A message is gone when a worker has taken it. Else kombu keeps a copy until it is acknowledged, two round trips each, and
    # a worker that holds one when Redis goes away ends, or lives on half dead (kombu 5.7). So there is no visibility timeout,
    # either, after which a task would be run once more. Lost is what a killed worker had taken and not begun: it is sent again.
    "ack_emulation": False,
    "socket_timeout": 15,  # s; the default waits for ever for a Redis that hangs
    "socket_connect_timeout": 5,  # s
    "socket_keepalive": True,  # notice a peer that vanished without a word
    "health_check_interval": 25,  # s; the same for idle connections
    "queue_order_strategy": "priority",  # queues in their order: control before crawlers, always (tasks/app.py)
    **_broker.options,
}
result_backend_transport_options = dict(_broker.options)
if _namespace:  # several fleets in one Redis: each has queues and results of its own
    broker_transport_options["global_keyprefix"] = f"{_namespace}:"
    result_backend_transport_options["global_keyprefix"] = f"{_namespace}:"
redis_socket_timeout = 15.0  # s; the same for results
redis_socket_connect_timeout = 5.0  # s
redis_socket_keepalive = not _broker.is_socket
redis_backend_health_check_interval = 25

# Messages: JSON and nothing else. Pickle would let anyone who can write to Redis run code in a worker.
accept_content = ["json"]
task_serializer = "json"
result_serializer = "json"
event_serializer = "json"

# Queues: each service has its own, so that nodes can be kept for one of them (`celery -A tasks worker -Q crawlers.forum_list`).
task_default_queue = "control"
task_queues = [
    Queue(name, routing_key=name)  # type: ignore[no-untyped-call]
    for name in ("control", *(f"crawlers.{service}" for service in _services))
]
task_routes = ("tasks.routing.route",)  # run_crawler to the queue of its service, the rest to control
task_create_missing_queues = True  # a service may be named by one node's TRAWL_FLEET before another has restarted

# Delivery.
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
worker_concurrency = _crawlers + RESERVED_PROCESSES  # a crawler occupies the process that supervises it, for its life
worker_proc_alive_timeout = 30.0  # s; the default of 4 kills pool processes that start slowly on a busy machine
# SIGTERM, too, lets crawlers finish their pages: REMAP_SIGTERM is not needed, in no container either.
worker_soft_shutdown_timeout = _grace_s  # s; SIGQUIT: crawlers may finish their pages; the node is gone as soon as they have
# Leaks of a database driver, or of an operator's own tasks. Looked at between two tasks: a process that hosts a crawler, whose
# task lasts for days, is never replaced for it; the crawler has limits of its own.
worker_max_memory_per_child = 400_000  # KiB, of resident memory; a new one has 60,000
worker_max_tasks_per_child = 10_000  # some hours; a new one costs 0.1 s

# Time limits: (soft, hard) for each task that lasts seconds. The hard one gives 0.1 s before SIGKILL. run_crawler has none.
_SHORT = {"soft_time_limit": 50, "time_limit": 60}
task_annotations = {
    f"trawl.{name}": _SHORT
    for name in (
        *(
            "seed_forums",
            "rescan_forum",
            "refresh_posts",
            "backfill",
            "recheck_threads",
            "reconcile_fleet",
            "scale_fleet",
            "roll_fleet",
            "store_items",
        ),
        *("probe_sites", "prune_raw_pages"),
        *("pause_fleet", "drain_fleet", "stop_fleet", "resume_fleet", "pause_site", "drain_site", "resume_site"),
    )
}

# A small crawl ends by its own timeout, of an hour at most, and has 40 s to close then. These are for one that does not.
task_annotations["trawl.crawl_once"] = {"soft_time_limit": 3700, "time_limit": 3800}

# Beat. What it sends until `trawl schedule` says otherwise; messages expire, and leave no results (tasks/leader_scheduler.py).
beat_schedule = {name: {"task": f"trawl.{name}", "schedule": every} for name, every in BEAT.items()}
beat_scheduler = "tasks.leader_scheduler:LeaderScheduler"  # any number of beats, one sends; `trawl schedule` changes what
beat_max_loop_interval = 1  # s; the lock is renewed at each look
# Left as it is, off: beat_enable_remote_control. Its thread would print a traceback at each outage of the broker, and knows only
# that beat ticks; the health check `python -m redis_components.beats` knows that it sends.

timezone = "UTC"
