"""The crawler process: `python -m workers.crawler SPIDER [-a NAME=VALUE] [-s NAME=VALUE]`.

Scrapy's reactor runs in crochet's thread, the main thread watches it (`workers.crawler_process`). A supervisor adds `--slot N
--token T` and some more. Started by hand, without them, the crawler holds no slot, is not counted in the fleet, and is listed as
`<spider>/hand-<pid>`. Exit codes: the table in `workers.exits`.

Settings (Scrapy's, `-s`): WATCHDOG_TIMEOUT (7 s) without an answer of the reactor ends the process; SHUTDOWN_GRACE (10 s) is
how long a stop may take; HEARTBEAT_INTERVAL (2 s); CRAWLER_MEMORY_SOFT_MB, CRAWLER_MEMORY_HARD_MB, CRAWLER_MAX_AGE and
CRAWLER_MAX_PAGES, from which on it is replaced (`workers.limits`).
"""

from __future__ import annotations

import gc

if __name__ == "__main__":
    gc.disable()  # while everything is loaded: the collector would look again and again at modules that stay

import faulthandler
import logging
import os
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from scrapy.settings import Settings
from scrapy.utils.log import configure_logging
from scrapy.utils.project import get_project_settings

from redis_components.errors import ConfigError, TrawlError

from .crawler_options import CrawlerOptions, parse
from .crawler_process import CrawlerProcess, StopSignals
from .exits import ExitKind
from .logs import SlotLog
from .memory import leave_on_memory_error
from .own_log import OwnLog
from .parent import Parent
from .reach_redis import reach_redis


def load_settings(options: CrawlerOptions) -> Settings:
    """The Scrapy project's settings, with those of the command line over them. Raises ConfigError, RedisUnavailable."""
    try:
        settings = get_project_settings()
    except ImportError as error:
        raise ConfigError(
            f"Scrapy's settings module cannot be imported ({error}); see SCRAPY_SETTINGS_MODULE and scrapy.cfg"
        ) from error
    settings.setdict(options.settings, priority="cmdline")
    return settings


def main(arguments: Sequence[str] | None = None) -> ExitKind:
    """Run one crawler; the caller leaves with the exit code of what is returned."""
    options = parse(arguments)
    signals = StopSignals()
    signals.listen()
    if options.parent:
        Parent(options.parent).bind()
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)  # kill -USR1 tells where every thread stands; supervisors use it
    try:
        if options.log_file:
            OwnLog(SlotLog(Path(options.log_file))).watch()
        settings = load_settings(options)
        configure_logging(settings)
        leave_on_memory_error(partial(os._exit, ExitKind.OUT_OF_MEMORY.exit_code))
        registry = reach_redis()
        process = CrawlerProcess(options, settings, registry, signals)
        gc.freeze()
        gc.enable()
    except TrawlError as error:
        print(f"trawl: {options.spider}: {error}", file=sys.stderr)  # noqa: T201 - a log line has no place before the log
        return ExitKind.REFUSED if isinstance(error, ConfigError) else ExitKind.CRASHED
    try:
        return process.run()
    except MemoryError:
        return ExitKind.OUT_OF_MEMORY


def leave(kind: ExitKind) -> None:
    """End the process now: threads of the reactor's pool are no daemons and may never end by themselves."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(kind.exit_code)


if __name__ == "__main__":
    leave(main())
