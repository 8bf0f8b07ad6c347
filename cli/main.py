"""The command `trawl`: its commands, and one place where every error becomes one line and an exit code.

| exit code | meaning                                                              |
|-----------|----------------------------------------------------------------------|
| 0         | done                                                                 |
| 1         | failed: what was asked for could not be done now                     |
| 2         | wrong use: an option, a name, a setting or a file has to be corrected |
| 130       | Ctrl-C                                                               |

The modules of commands are cheap to import: what talks to Redis or a database is imported when a command runs, so that
`trawl --help` answers at once.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

from redis_components import __version__
from redis_components.errors import ConfigError, TrawlError
from redis_components.server.variables import load_env_file

from .access.changing import changes
from .commands import (
    acl,
    audit,
    autoscale,
    backup,
    capacity,
    config,
    consume,
    crawl,
    db,
    dead,
    deploy,
    doctor,
    dupefilter,
    events,
    export,
    forget,
    forums,
    health,
    history,
    hold,
    init,
    items,
    jobs,
    lanes,
    limit,
    logs,
    migrate,
    nodes,
    notify,
    query,
    read,
    reparse,
    rescan,
    restore,
    roll,
    run,
    scale,
    schedule,
    seed,
    seed_urls,
    services,
    sites,
    status,
    systemd,
    tail,
    up,
    versions,
    why,
)
from .views.output import complain, say

DONE, FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130

app = typer.Typer(
    name="trawl",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        say(f"trawl {__version__}")
        raise typer.Exit


@app.callback()
def trawl(
    namespace: Annotated[str | None, typer.Option(metavar="NAME", help="The job to work on; overrides TRAWL_NAMESPACE.")] = None,
    version: Annotated[  # noqa: ARG001 - its callback has answered
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """A crawl fleet: Celery launches and supervises Scrapy crawlers that share one lossless frontier in Redis.

    **First steps**, in two terminals:

        trawl up                start everything on this machine
        trawl seed              give it the forums that are due
        trawl status --watch    see it work
        trawl export posts      what it has stored, as JSON lines

    Without TRAWL_REDIS_URL, `trawl` starts and stops a private Redis. Sites are declared in `sites/*.toml`; all data is stored
    in `data/`. Exit codes: 0 done, 1 failed, 2 wrong use, 130 Ctrl-C. TRAWL_DEBUG=1 shows the traceback of an error, NO_COLOR=1
    turns colours off, `trawl --install-completion` completes commands in bash, zsh and fish.
    """
    if namespace is not None:
        os.environ["TRAWL_NAMESPACE"] = namespace  # for what is imported now and for every process that is started
        os.environ.pop("TRAWL_NAMESPACE_FILE", None)


RUN, LOOK, CHANGE, DATA, SITES = "Run the fleet", "Look", "Change what is crawled", "Data", "Sites and set-up"

app.command("up", rich_help_panel=RUN)(up.up)
app.add_typer(services.app, name="services", rich_help_panel=RUN)
app.command("scale", rich_help_panel=RUN)(scale.scale)
app.command("autoscale", rich_help_panel=RUN)(autoscale.autoscale)
app.command("roll", rich_help_panel=RUN)(roll.roll)
app.command("limit", rich_help_panel=RUN)(limit.limit)
app.command("pause", rich_help_panel=RUN)(hold.pause)
app.command("drain", rich_help_panel=RUN)(hold.drain)
app.command("stop", rich_help_panel=RUN)(hold.stop)
app.command("resume", rich_help_panel=RUN)(hold.resume)
app.command("crawl", rich_help_panel=RUN)(crawl.crawl)
app.command("deploy", rich_help_panel=RUN)(deploy.deploy)
app.add_typer(versions.app, name="versions", rich_help_panel=RUN)
app.command("run", rich_help_panel=RUN)(run.run)
app.add_typer(jobs.app, name="jobs", rich_help_panel=RUN)
app.command("status", rich_help_panel=LOOK)(status.status)
app.command("forums", rich_help_panel=LOOK)(forums.forums)
app.command("nodes", rich_help_panel=LOOK)(nodes.nodes)
app.command("logs", rich_help_panel=LOOK)(logs.logs)
app.command("history", rich_help_panel=LOOK)(history.history)
app.command("lanes", rich_help_panel=LOOK)(lanes.lanes)
app.command("health", rich_help_panel=LOOK)(health.health)
app.command("audit", rich_help_panel=LOOK)(audit.audit)
app.command("doctor", rich_help_panel=LOOK)(doctor.doctor)
app.command("seed", rich_help_panel=CHANGE)(seed.seed)
app.command("seed-urls", rich_help_panel=CHANGE)(seed_urls.seed_urls)
app.command("rescan", rich_help_panel=CHANGE)(rescan.rescan)
app.command("backfill", rich_help_panel=CHANGE)(rescan.backfill)
app.command("forget", rich_help_panel=CHANGE)(forget.forget)
app.command("dupefilter", rich_help_panel=CHANGE)(dupefilter.dupefilter)
app.add_typer(schedule.app, name="schedule", rich_help_panel=CHANGE)
app.add_typer(dead.app, name="dead", rich_help_panel=CHANGE)
app.command("tail", rich_help_panel=LOOK)(tail.tail)
app.add_typer(notify.app, name="notify", rich_help_panel=LOOK)
app.add_typer(events.app, name="events", rich_help_panel=DATA)
app.command("why", rich_help_panel=LOOK)(why.why)
app.command("export", rich_help_panel=DATA)(export.export)
app.command("query", rich_help_panel=DATA)(query.query)
app.command("sql", rich_help_panel=DATA)(query.sql)
app.command("consume", rich_help_panel=DATA)(consume.consume)
app.command("items", rich_help_panel=LOOK)(items.items)
app.command("reparse", rich_help_panel=DATA)(reparse.reparse)
app.command("backup", rich_help_panel=DATA)(backup.backup)
app.command("restore", rich_help_panel=DATA)(restore.restore)
app.add_typer(db.app, name="db", rich_help_panel=DATA)
app.add_typer(migrate.app, name="migrate", rich_help_panel=DATA)
app.command("init", rich_help_panel=SITES)(init.init)
app.add_typer(sites.app, name="sites", rich_help_panel=SITES)
app.command("capacity", rich_help_panel=SITES)(capacity.capacity)
app.command("systemd", rich_help_panel=SITES)(systemd.systemd)
app.command("read", rich_help_panel=SITES)(read.read)
app.command("acl", rich_help_panel=SITES)(acl.acl)
app.add_typer(config.app, name="config", rich_help_panel=SITES)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. `arguments` without the program's name, None for this process's own.

    Commands that change something leave a line in the audit, also where they fail.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    code = _run(given)
    if changes(given):
        from .access.audit import record

        record(given, code)
    return code


def _run(arguments: list[str]) -> int:
    try:
        load_env_file()
        code = _command()(arguments, prog_name="trawl", standalone_mode=False)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # the latter is how typer ends when a pipe breaks
        # `trawl export | head`: the reader has enough. What is left in the buffer must not fail again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except Exception as error:
        return _complain(error)
    return code if isinstance(code, int) else DONE


@cache
def _command() -> Any:
    """All commands, made from their signatures once: that takes a tenth of a second, and typer's app does it at each call."""
    return typer.main.get_command(app)


def _complain(error: Exception) -> int:
    """Print the error in one line on standard error (with TRAWL_DEBUG=1 also its traceback); returns the exit code."""
    if _shows_tracebacks():
        say(traceback.format_exc().rstrip(), stderr=True)
    if isinstance(error, TyperException):
        if line := error.format_message():  # without one it has shown the help
            complain(f"{_one_line(line)} (trawl --help, trawl COMMAND --help)")
        return WRONG_USE
    if isinstance(error, TrawlError):
        complain(_one_line(str(error)))
        return WRONG_USE if isinstance(error, ConfigError) else FAILED
    complain(f"internal error: {error!r}; please report it with the traceback that TRAWL_DEBUG=1 shows")
    return FAILED


def _shows_tracebacks() -> bool:
    from workers.environment.variables import Tool

    try:
        return Tool.read().debug
    except ConfigError:
        return False


def _one_line(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    sys.exit(main())
