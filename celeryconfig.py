"""Every Celery setting that differs from the default, with its reason. Read when Celery first needs it, not with `import tasks`.

The rules behind them, measured with Celery 5.7 on Redis:
- Messages are acknowledged early and nothing relies on their redelivery: what is missing, `reconcile_fleet` sends again.
- No `acks_late`, no ETA or countdown, no `retry()`, no `rate_limit`: a worker of Celery 5.7 that holds an unacknowledged message
  ends when Redis goes away (AttributeError in `restore_unacked_once`).
- `run_crawler` lives as long as its node. All other tasks last seconds and have time limits.

TRAWL_FLEET names the services and their size, TRAWL_NODE_CRAWLERS how many crawlers this node may host; see `workers/fleet.py`.
"""

from __future__ import annotations

from click import ClickException
from kombu.entity import Queue

from redis_components.embedded import data_dir, redis_url
from redis_components.errors import TrawlError
from redis_components.namespace import fleet_namespace
from workers.broker import broker_of
from workers.fleet import default_fleet, node_crawlers
from workers.history import history_days
from workers.log_stream import stream_level
from workers.logs import LogLimits
from workers.reach_redis import check_login

try:
    _broker, _services, _crawlers = broker_of(check_login(redis_url())), sorted(default_fleet()), node_crawlers()
    _namespace = fleet_namespace()
    stream_level(), LogLimits.from_environment(), history_days()  # read by each supervisor; what is wrong shall be said now
except TrawlError as error:
    raise ClickException(str(error)) from error  # Celery's command line shows it as one line, exit code 1

RESERVED_PROCESSES = 3  # for the tasks that last seconds: one that writes, one that seeds, one that reconciles
BEAT = {"seed_forums": 5.0, "reconcile_fleet": 2.0, "store_items": 1.0}  # s

# Broker and results: the Redis that everything else is in, too.
broker_url = _broker.url  # TRAWL_BROKER_URL, TRAWL_REDIS_URL, else the project's own server, which is started here
result_backend = _broker.results
broker_use_ssl = _broker.tls or False
redis_backend_use_ssl = _broker.tls or {}
broker_connection_retry_on_startup = True  # a worker may be started before its Redis is
broker_connection_max_retries = None  # the default gives up after 100 tries: a worker has to outlast any outage
broker_transport_options = {
    "visibility_timeout": 3600,  # s; messages are acknowledged at once, so nothing is ever this old
    "socket_timeout": 15,  # s; the default waits for ever for a Redis that hangs
    "socket_connect_timeout": 5,  # s
    "socket_keepalive": True,  # notice a peer that vanished without a word
    "health_check_interval": 25,  # s; the same for idle connections
    "queue_order_strategy": "priority",  # queues in the order below: control before crawlers, always
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
task_acks_late = False  # on Redis a late acknowledgement means: run again after each visibility timeout, while it still runs
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

# Processes.
worker_concurrency = _crawlers + RESERVED_PROCESSES  # a crawler occupies the process that supervises it, for its life
worker_proc_alive_timeout = 30.0  # s; the default of 4 kills pool processes that start slowly on a busy machine
worker_soft_shutdown_timeout = (
    20.0  # s; SIGQUIT: crawlers may finish their pages; the node is gone as soon as they have (tasks/node_step.py)
)

# Time limits: (soft, hard) for each task that lasts seconds. The hard one gives 0.1 s before SIGKILL. run_crawler has none.
_SHORT = {"soft_time_limit": 50, "time_limit": 60}
task_annotations = {
    f"trawl.{name}": _SHORT
    for name in (
        *("seed_forums", "refresh_posts", "reconcile_fleet", "scale_fleet", "roll_fleet", "store_items"),
        *("pause_fleet", "drain_fleet", "stop_fleet", "resume_fleet", "pause_site", "drain_site", "resume_site"),
    )
}

# Beat. Messages expire, so that they do not pile up while no worker is there. Sent twice, by two beats, each task does no harm.
beat_schedule = {
    name: {"task": f"trawl.{name}", "schedule": every, "options": {"expires": every, "ignore_result": True}}
    for name, every in BEAT.items()
}
beat_scheduler = "tasks.leader_scheduler:LeaderScheduler"  # any number of beats, one sends; `trawl schedule` changes what
beat_schedule_filename = str(data_dir() / "celerybeat-schedule")  # for who asks for another scheduler with -S
beat_max_loop_interval = 1  # s; look often, periods are short

timezone = "UTC"
