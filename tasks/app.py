"""The Celery application: `celery -A tasks worker|beat|flower`, from the project's root."""

from __future__ import annotations

import logging
import warnings
from typing import Any

from celery import Celery
from celery.exceptions import CPendingDeprecationWarning
from celery.platforms import SecurityWarning
from celery.signals import (
    after_setup_logger,
    after_setup_task_logger,
    beat_init,
    celeryd_after_setup,
    celeryd_init,
    worker_init,
    worker_process_init,
    worker_process_shutdown,
)

from redis_components.server.printable import safe_records
from workers.logs.json_lines import identify, never_wait, use_json
from workers.node.worker_setup import load_ahead
from workers.tracing import traces

from .base import FleetTask, is_needless
from .node import HealthStep, LoopStep, NodeStep, end_as_orphan, remember_main_process
from .program_start import CHECK_OPTION
from .refusing_broker import RefusingBroker, keep_short
from .routing import CONTROL, celeryconfig

# Messages that no worker can read or run are set aside (tasks/guard/refused.py).
SHORT: dict[str, Any] = celeryconfig.SHORT  # options of a task that lasts seconds
HEARTBEAT_S = 5.0
"""Between two of a worker's heartbeats for Flower, which calls it offline after twice as long. Celery's 2 s cost a fleet of five
workers half a percent of a core at rest; the fleet's own heartbeats, of nodes and crawlers, are other ones.
"""

app = Celery(
    "trawl",
    task_cls=FleetTask,
    amqp="tasks.guard.transport:AMQP",
    control="tasks.guard.worker:Control",
    events="tasks.refusing_broker:Events",
)
app.config_from_object(celeryconfig)  # a setting is read when it is needed: importing tasks opens nothing
app.user_options["preload"].add(CHECK_OPTION)
app.steps["worker"].update((NodeStep, HealthStep))
app.steps["consumer"].update((RefusingBroker, LoopStep))


@worker_init.connect
def _without_neighbours(sender: Any, **_: Any) -> None:
    # As --without-gossip --without-mingle. Workers need not know each other: each would read all events of all of them, wait a
    # second for neighbours at its start and at each reconnection, and leave a binding in Redis when it is killed.
    sender.options.update(without_gossip=True, without_mingle=True)
    if not sender.options.get("heartbeat_interval"):
        sender.options["heartbeat_interval"] = HEARTBEAT_S


@celeryd_after_setup.connect
def _control_first(instance: Any, **_: Any) -> None:
    # Queues are read in this order, and -Q has brought its own: tasks of seconds must not wait behind one of days.
    queues = instance.app.amqp.queues
    queues.select(sorted(queues.consume_from, key=lambda name: name != CONTROL))


@celeryd_init.connect
def _without_needless_warnings(**_: Any) -> None:
    # Celery warns root because of messages that could run code. There are none: only JSON is accepted (celeryconfig.py).
    warnings.filterwarnings("ignore", message="You're running the worker with superuser privileges", category=SecurityWarning)
    # Six lines at each loss of the broker about a setting that celeryconfig.py has decided.
    warnings.filterwarnings("ignore", message=r"\s*In Celery 5\.1 we introduced", category=CPendingDeprecationWarning)


@celeryd_init.connect
@beat_init.connect
def _one_entry_for_each_record(**_: Any) -> None:
    safe_records()  # names, reasons and crawlers' lines come from pages and from Redis


@celeryd_init.connect
def _worker_is_named(sender: Any = None, **_: Any) -> None:
    identify(program="worker", node=str(sender))


@beat_init.connect
def _beat_is_named(**_: Any) -> None:
    identify(program="beat")


@worker_process_shutdown.connect
def _last_spans(**_: Any) -> None:
    traces.close()  # a process of the pool ends without atexit


@after_setup_logger.connect
@after_setup_task_logger.connect
def _json_where_asked(logger: Any, **_: Any) -> None:
    use_json(logger)


@celeryd_init.connect
def _one_line_for_each_failure(**_: Any) -> None:
    logging.getLogger("celery.app.trace").addFilter(lambda record: not is_needless(record))
    keep_short()


@celeryd_init.connect
def _without_whole_messages(**_: Any) -> None:
    logging.getLogger("celery.pool").setLevel(logging.INFO)  # at DEBUG it writes each message with all its arguments


@celeryd_init.connect
def _patient_with_results(conf: Any = None, **_: Any) -> None:
    if conf is not None:  # a task's result outlives an outage of seconds
        options = {name: value for name, value in conf.result_backend_transport_options.items() if name != "retry_policy"}
        conf.result_backend_transport_options = options


@worker_init.connect
def _load_what_tasks_need(**_: Any) -> None:
    remember_main_process()
    load_ahead()


@worker_process_init.connect
def _supervise_whatever_the_terminal_does(**_: Any) -> None:
    end_as_orphan()
    never_wait()
