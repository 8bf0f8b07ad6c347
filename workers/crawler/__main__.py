"""The crawler process: `python -m workers.crawler SPIDER [-a NAME=VALUE] [-s NAME=VALUE]`.

Scrapy's reactor runs in crochet's thread, the main thread watches it (`workers.crawler.process`). A supervisor adds `--slot N
--token T` and some more. Started by hand, without them, the crawler holds no slot, is not counted in the fleet, and is listed as
`<spider>/hand-<pid>`. Exit codes: the table in `workers.process.exit_kinds`.

Settings (Scrapy's, `-s`): WATCHDOG_TIMEOUT (7 s) without an answer of the reactor ends the process; SHUTDOWN_GRACE (10 s) is
how long a stop may take; HEARTBEAT_INTERVAL (2 s); CRAWLER_MEMORY_SOFT_MB, CRAWLER_MEMORY_HARD_MB, CRAWLER_MAX_AGE and
CRAWLER_MAX_PAGES, from which on it is replaced (`workers.crawler.setting_types`).
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

from scrapy.settings import Settings
from scrapy.utils.log import configure_logging
from scrapy.utils.project import get_project_settings

from redis_components.errors import ConfigError, TrawlError
from redis_components.server.printable import in_one_line, safe_records
from redis_components.server.variables import load_env_file
from workers.process import page_at_work, start_checks
from workers.process.exit_kinds import ExitKind
from workers.process.memory import ProcessTree, offer_to_oom_killer
from workers.process.options import CrawlerOptions, own_options
from workers.process.pipes import Parent, StopSignals, announce
from workers.process.start_checks import reach_redis

from .process import CrawlerProcess
from .setting_types import set_each
from .turns import OwnProcessNeeded, Turns

logger = logging.getLogger(__name__)


def load_settings(options: CrawlerOptions) -> Settings:
    """Return the Scrapy project's settings, overridden by those of the command line. Raises ConfigError, RedisUnavailable."""
    load_env_file()
    try:
        settings = get_project_settings()
    except ImportError as error:
        raise ConfigError(
            f"Scrapy's settings module cannot be imported ({error}); see SCRAPY_SETTINGS_MODULE and scrapy.cfg"
        ) from error
    set_each(settings, options.settings)
    return settings


def main(options: CrawlerOptions, turns: Turns | None = None) -> ExitKind:
    """Run one crawler; the caller leaves with the exit code of what is returned. `turns`: of the process, where it may be given
    several crawls.
    """
    signals = turns.signals if turns else StopSignals()
    is_first = turns is None or not turns.number
    try:
        if is_first:
            _begin_process(options, signals)
        settings = load_settings(options)
        if turns:
            turns.begins(settings)
        if is_first:
            configure_logging(settings)
        registry = reach_redis()
        process = CrawlerProcess(options, settings, registry, signals, turns)
        if is_first:
            gc.freeze()  # later it would keep for ever what the crawl before has left
        gc.enable()
    except OwnProcessNeeded as error:
        logger.info("the crawl begins again in a new process: %s", error)
        return ExitKind.ABORTED
    except TrawlError as error:
        print(f"trawl: {in_one_line(f'{options.spider}: {error}')}", file=sys.stderr)  # noqa: T201 - a log line has no place before the log
        return ExitKind.REFUSED if isinstance(error, ConfigError) else ExitKind.CRASHED
    return process.run()


def _begin_process(options: CrawlerOptions, signals: StopSignals) -> None:
    """Set up what stays for all crawls of this process. Raises ConfigError, OSError."""
    signals.listen()
    offer_to_oom_killer()
    if options.parent:
        Parent(options.parent).bind()
    safe_records()  # logged text has pages, URLs and exceptions of foreign origin
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)  # kill -USR1 dumps each thread's stack; supervisors use it
    if options.page_fd is not None:
        page_at_work.share(options.page_fd)
    start_checks.require(start_checks.CRAWLER, "a crawler")


def leave(kind: ExitKind, pulse_fd: int | None) -> None:
    """End the process now: threads of the reactor's pool are not daemons and may never end."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    _exit(kind, pulse_fd)


def _exit(kind: ExitKind, pulse_fd: int | None) -> None:
    if pulse_fd is not None:  # its supervisor may be gone, and looks once a second: a browser would live on
        left = ProcessTree(os.getpid())
        left.look()
        left.kill_others()
    announce(pulse_fd, kind)
    os._exit(kind.exit_code)


if __name__ == "__main__":
    given = own_options()
    leave(main(given), given.pulse_fd)
