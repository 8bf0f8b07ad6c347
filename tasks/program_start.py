"""Checks at the start of a program: `celery -A tasks worker`, `beat`, `flower`, and every other command of Celery.

Celery reads a setting where it needs it: some long after the start, some inside code that logs an error and goes on. An
operator's mistake shall be one line and exit code 1 before anything runs. Celery's signals cannot do that, because Celery logs
what a receiver raises. Celery adds the options in `app.user_options["preload"]` to every command of its command line, also to
those of plugins such as Flower, and the callback of an option runs before the command does.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from redis_components.embedded import redis_url
from redis_components.errors import TrawlError
from redis_components.server.names import fleet_namespace
from redis_components.server.signing import read_keys
from redis_components.server.variables import load_env_file, refuse_example_secrets
from workers.application import application
from workers.fleet.sizes import default_fleet, node_crawlers
from workers.logs.follow import stream_level
from workers.logs.slot_log import LogLimits
from workers.node.worker_setup import broker_of, own_tasks
from workers.process import start_checks
from workers.process.exit_kinds import shutdown_grace
from workers.process.run_recorder import history_days
from workers.process.start_checks import check_login

from .flower_crawlers import check_flower

_WITHOUT_BROKER = {"multi", "upgrade", "logtool"}


def check_environment() -> None:
    """Read every variable that a program of the fleet needs. Without TRAWL_REDIS_URL it starts the project's own server.

    Raises ConfigError for a value that cannot be used, RedisUnavailable for a server that does not start or refuses the password.
    """
    load_env_file()
    refuse_example_secrets(os.environ)
    default_fleet(), node_crawlers(), fleet_namespace(), shutdown_grace(), own_tasks()
    application().check()
    stream_level(), LogLimits.from_environment(), history_days(), read_keys()
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
