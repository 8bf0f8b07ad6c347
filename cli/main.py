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
from typing import Annotated

import typer
from typer.exceptions import TyperException

from redis_components.errors import ConfigError, TrawlError

from . import (
    autoscale,
    crawl,
    db,
    dead,
    dupefilter,
    export,
    forget,
    forums,
    history,
    hold,
    logs,
    migrate,
    nodes,
    reparse,
    rescan,
    roll,
    scale,
    schedule,
    seed,
    sites,
    status,
    up,
)

DONE, FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130

app = typer.Typer(
    name="trawl",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def trawl(
    namespace: Annotated[
        str | None, typer.Option(metavar="NAME", help="The job to look at or to start, in place of TRAWL_NAMESPACE.")
    ] = None,
) -> None:
    """A crawl fleet: Celery launches and supervises Scrapy crawlers that share one lossless frontier in Redis.

    **First steps**, in two terminals:

        trawl up                start everything on this machine
        trawl seed              give it the forums that are due
        trawl status --watch    see it work
        trawl export posts      what it has stored, as JSON lines

    Without TRAWL_REDIS_URL the project's own Redis is started and stopped by itself. Sites are declared in `sites/*.toml`;
    everything that is stored is in `data/`. Exit codes: 0 done, 1 failed, 2 wrong use. TRAWL_DEBUG=1 shows where an error
    comes from.
    """
    if namespace is not None:
        os.environ["TRAWL_NAMESPACE"] = namespace  # for what is imported now and for every process that is started


app.command("up")(up.up)
app.command("seed")(seed.seed)
app.command("forums")(forums.forums)
app.command("rescan")(rescan.rescan)
app.command("backfill")(rescan.backfill)
app.command("forget")(forget.forget)
app.command("scale")(scale.scale)
app.command("autoscale")(autoscale.autoscale)
app.command("roll")(roll.roll)
app.command("pause")(hold.pause)
app.command("drain")(hold.drain)
app.command("stop")(hold.stop)
app.command("resume")(hold.resume)
app.command("status")(status.status)
app.command("nodes")(nodes.nodes)
app.command("logs")(logs.logs)
app.command("crawl")(crawl.crawl)
app.command("history")(history.history)
app.command("export")(export.export)
app.command("reparse")(reparse.reparse)
app.command("dupefilter")(dupefilter.dupefilter)
app.add_typer(db.app, name="db")
app.add_typer(dead.app, name="dead")
app.add_typer(schedule.app, name="schedule")
app.add_typer(sites.app, name="sites")
app.add_typer(migrate.app, name="migrate")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. `arguments` without the program's name, None for this process's own."""
    try:
        code = app(list(arguments) if arguments is not None else None, prog_name="trawl", standalone_mode=False)
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


def _complain(error: Exception) -> int:
    """Say what went wrong in one line on standard error (with TRAWL_DEBUG=1 also where); returns the exit code."""
    if os.environ.get("TRAWL_DEBUG"):
        traceback.print_exc()
    if isinstance(error, TyperException):
        if line := error.format_message():  # without one it has shown the help
            print(f"trawl: {_one_line(line)} (trawl --help, trawl COMMAND --help)", file=sys.stderr)
        return WRONG_USE
    if isinstance(error, TrawlError):
        print(f"trawl: {_one_line(str(error))}", file=sys.stderr)
        return WRONG_USE if isinstance(error, ConfigError) else FAILED
    print(f"trawl: a fault in Trawl itself: {error!r}; with TRAWL_DEBUG=1 it shows where: please report it", file=sys.stderr)
    return FAILED


def _one_line(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    sys.exit(main())
