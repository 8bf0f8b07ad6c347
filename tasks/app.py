"""The Celery application, `celery -A tasks worker|beat|flower`, and the checks at the start of its programs.

Celery reads a setting where it needs it: some long after the start, some inside code that logs an error and goes on. An
operator's mistake shall be one line and exit code 1 before anything runs. Celery's signals cannot do that, because Celery logs
what a receiver raises. Celery adds the options in `app.user_options["preload"]` to every command of its command line, also to
those of plugins such as Flower, and the callback of an option runs before the command does.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from typing import Any

import click
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
)

from redis_components.embedded import redis_url
from redis_components.errors import TrawlError
from redis_components.server.printable import safe_records
from redis_components.server.variables import load_env_file, refuse_example_secrets
from workers.application import application
from workers.fleet.sizes import node_crawlers
from workers.logs.slot_log import LogLimits
from workers.logs.worker_log import identify, never_wait, stream_level, use_json
from workers.node.worker_setup import broker_of, load_ahead
from workers.process import start_checks
from workers.process.start_checks import check_login

from .base import CONTROL, FleetTask, celeryconfig, is_worth_a_line
from .flower_crawlers import check_flower
from .node import HealthStep, LoopStep, NodeStep, end_as_orphan, remember_main_process
from .refusing_broker import RefusingBroker, keep_short

_WITHOUT_BROKER = {"multi", "upgrade", "logtool"}


def check_environment() -> None:
    """Read every variable that a program of the fleet needs. Without TRAWL_REDIS_URL it starts the project's own server.

    Raises ConfigError for a value that cannot be used, RedisUnavailable for a server that does not start or refuses the password.
    """
    load_env_file()
    refuse_example_secrets(os.environ)
    celeryconfig.check()
    application().check()
    stream_level(), LogLimits.from_environment()
    broker_of(check_login(redis_url()))


def _check(context: click.Context, option: click.Parameter, _value: Any) -> None:
    if context.obj is not None:  # it has run: Celery 5.6 would ask for the value of an option that has none
        context.obj.app.user_options["preload"].discard(option)
    if context.resilient_parsing or context.info_name in _WITHOUT_BROKER:
        return
    try:
        check_environment()
        if context.info_name == "worker":
            start_checks.require_for_worker(node_crawlers())
        if context.info_name == "flower":
            arguments = sys.argv
            check_flower(arguments[arguments.index("flower") + 1 :] if "flower" in arguments else [])
    except TrawlError as error:
        raise click.ClickException(str(error)) from error


CHECK_OPTION = click.Option(
    ["--check-environment"],
    is_flag=True,
    is_eager=True,  # before the callbacks of Celery's own options, which read settings
    hidden=True,
    expose_value=False,
    callback=_check,
)
"""Carries the check; it is never given on a command line."""


# Messages that no worker can read or run are set aside (tasks/guard/transport.py).
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


@after_setup_logger.connect
@after_setup_task_logger.connect
def _json_where_asked(logger: Any, **_: Any) -> None:
    use_json(logger)


@celeryd_init.connect
def _one_line_for_each_failure(**_: Any) -> None:
    logging.getLogger("celery.app.trace").addFilter(is_worth_a_line)
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
