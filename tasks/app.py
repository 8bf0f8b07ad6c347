"""The Celery application: `celery -A tasks worker|beat|flower`, from the project's root."""

from __future__ import annotations

import warnings
from typing import Any

from celery import Celery
from celery.exceptions import CPendingDeprecationWarning
from celery.platforms import SecurityWarning
from celery.signals import celeryd_after_setup, celeryd_init, worker_init, worker_process_init

from workers.loading_ahead import load_ahead
from workers.patient_log import never_wait

from .base import FleetTask
from .node_step import NodeStep
from .routing import CONTROL

app = Celery("trawl", task_cls=FleetTask)
app.config_from_object("celeryconfig")  # read when first needed: importing tasks opens nothing
app.steps["worker"].add(NodeStep)


@worker_init.connect
def _without_neighbours(sender: Any, **_: Any) -> None:
    # As --without-gossip --without-mingle. Workers need not know each other: each would read all events of all of them, wait a
    # second for neighbours at its start and at each reconnection, and leave a binding in Redis when it is killed.
    sender.options.update(without_gossip=True, without_mingle=True)


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


@worker_init.connect
def _load_what_tasks_need(**_: Any) -> None:
    load_ahead()


@worker_process_init.connect
def _supervise_whatever_the_terminal_does(**_: Any) -> None:
    never_wait()
