"""The command `trawl`: its commands, and one place where every error becomes one line and an exit code.

| exit code | meaning                                                              |
|-----------|----------------------------------------------------------------------|
| 0         | done                                                                 |
| 1         | failed: what was asked for could not be done now                     |
| 2         | wrong use: an option, a name, a setting or a file has to be corrected |
| 130       | Ctrl-C                                                               |

Only the module of the command that runs is imported. The list of commands, their completion and the message for a wrong word
are made from the table `COMMANDS`, without any of their modules.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

from redis_components import __version__
from redis_components.errors import ConfigError, TrawlError
from redis_components.server.variables import load_env_file

from .access.mutating_commands import changes, words_of_command
from .views.option_help import describe_types_in_words, refusal
from .views.option_types import validate_what_needs_it
from .views.output import complain, say

DONE, FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
_FULL = {errno.ENOSPC, errno.EDQUOT}


def _version(asked: bool) -> None:
    if asked:
        say(f"trawl {__version__}")
        raise typer.Exit


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

COMMANDS = {  # in the order of the help: panel, the function or group of commands in `cli.commands`, and the line of the list
    "up": (RUN, "up.up", "Start Redis, a worker with its crawlers, beat, Flower and the exporter here, until Ctrl-C."),
    "api": (RUN, "api.api", "Serve the fleet's HTTP API, with scrapyd's schedule.json."),
    "services": (RUN, "services.app", "Declare services: any Scrapy project's spiders."),
    "scale": (RUN, "scale.scale", "Set the number of crawlers of a service."),
    "autoscale": (RUN, "autoscale.autoscale", "Scale a service automatically between two bounds."),
    "roll": (RUN, "roll.roll", "Replace running crawlers by new processes, one after the other."),
    "limit": (RUN, "limit.limit", "Limit the requests that all crawlers together send to a site."),
    "pause": (RUN, "hold.pause", "Start no more requests; crawlers stay, and queued requests wait."),
    "drain": (RUN, "hold.drain", "Accept no new work; queued requests are crawled to the end."),
    "stop": (RUN, "hold.stop", "Stop the crawlers of a service, or of one slot."),
    "resume": (RUN, "hold.resume", "End pauses, drains and stops."),
    "crawl": (RUN, "crawl.crawl", "Run one crawl with a spider and show its result."),
    "deploy": (RUN, "deploy.deploy", "Bring a project to the crawlers of a service, and replace them one by one."),
    "versions": (RUN, "versions.app", "List, use and remove deployed versions."),
    "run": (RUN, "run.run", "Start a job: a crawl with its own queue, shared by several crawlers."),
    "jobs": (RUN, "jobs.app", "List, show, cancel, resume and rerun jobs."),
    "status": (LOOK, "status.status", "Show what needs attention, services, queues, crawlers and the last errors."),
    "forums": (LOOK, "forums.forums", "Show how fresh each forum is, the stalest first."),
    "nodes": (LOOK, "nodes.nodes", "Show the nodes: their services, crawlers and capacity."),
    "logs": (LOOK, "logs.logs", "Show the logs of the crawlers on this machine, sorted by time."),
    "history": (LOOK, "history.history", "Show crawler processes, newest first, and why each ended."),
    "lanes": (LOOK, "lanes.lanes", "Show the sites that have limits, that asked for a pause, or that answered badly."),
    "health": (LOOK, "health.health", "Check that the worker of this machine works; for containers and systemd."),
    "audit": (LOOK, "audit.audit", "Show the commands and tasks that changed something, and who ran them."),
    "doctor": (LOOK, "doctor.doctor", "Check Redis, broker, clocks, database, disks, permissions, ports and site files."),
    "bot": (LOOK, "bot.app", "Make and show the key by which sites recognise the fleet (Web Bot Auth)."),
    "seed": (CHANGE, "seed.seed", "Queue forums for a scan, which finds their new and changed threads."),
    "seed-urls": (CHANGE, "seed_urls.seed_urls", "Queue URLs for a spider, in the order of the lines."),
    "rescan": (CHANGE, "rescan.rescan", "Scan forums now, down to known threads or to a depth."),
    "backfill": (CHANGE, "rescan.backfill", "Fetch history: threads from before the forum was watched."),
    "forget": (CHANGE, "forget.forget", "Forget which threads are stored, so that the next scans read them again."),
    "dupefilter": (CHANGE, "dupefilter.dupefilter", "Show size and false positives of a dupefilter, or remove URLs from it."),
    "schedule": (CHANGE, "schedule.app", "Show and change which tasks beat sends, and how often."),
    "dead": (CHANGE, "dead.app", "Show, replay and delete requests, items and messages that were given up."),
    "tail": (LOOK, "tail.tail", "Show new, edited and deleted posts and comments as they are stored."),
    "notify": (LOOK, "notify.app", "Send a test message, or alarms without a running fleet."),
    "events": (DATA, "events.app", "Show the outputs of events, and send refused or past events again."),
    "why": (LOOK, "why.why", "Explain why a page is stored, or is not."),
    "export": (DATA, "export.export", "Write stored posts, comments, forums, scans or gaps as JSON lines, CSV or Parquet."),
    "query": (DATA, "query.query", "Search stored posts and comments, the newest first."),
    "sql": (DATA, "query.sql", "Run one SELECT or VALUES on the stored data; read-only."),
    "consume": (DATA, "consume.consume", "Take a service's items out of Redis, into a file, a database or a URL."),
    "items": (LOOK, "items.items", "Show how many items wait, and whether a consumer takes them."),
    "reparse": (DATA, "reparse.reparse", "Read the kept raw pages of a site again, and store the results."),
    "backup": (DATA, "backup.backup", "Write the fleet's state, queues and database into one file."),
    "restore": (DATA, "backup.restore", "Put a backup back."),
    "db": (DATA, "db.app", "Check, upgrade and move the database."),
    "migrate": (DATA, "migrate.app", "Continue a crawl that another package started."),
    "init": (SITES, "init.init", "Make a project: site files, settings, a package for your own spiders."),
    "sites": (SITES, "sites.app", "Make, try, list and show site files."),
    "capacity": (SITES, "capacity.capacity", "Compute what a fleet needs: crawlers, cores, memory, rows per second."),
    "systemd": (SITES, "systemd.systemd", "Print systemd units for this machine."),
    "upgrade": (SITES, "upgrade.upgrade", "Show what this version of Trawl will change in the running fleet and its data."),
    "read": (SITES, "read.read", "Show what Trawl reads from a page of any forum."),
    "acl": (SITES, "acl.acl", "Print Redis users, each with the keys and commands that it needs."),
    "config": (SITES, "config.app", "Show the configuration."),
}


def program(only: str | None = None, outline: bool = False) -> Any:
    """Return the group of all commands, or of `only`. With `outline` they have a name and a line of help, but no options."""
    return _program(only, outline)


@cache
def _program(only: str | None, outline: bool) -> Any:
    describe_types_in_words()
    validate_what_needs_it()
    app = typer.Typer(
        name="trawl",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(trawl)
    for name in (only,) if only in COMMANDS else COMMANDS:
        panel, place, line = COMMANDS[name]
        if outline:
            app.command(name, rich_help_panel=panel, help=line)(_outlined)
            continue
        module, _, function = place.partition(".")
        found = getattr(import_module(f".commands.{module}", __package__), function)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name, rich_help_panel=panel)
        else:
            app.command(name, rich_help_panel=panel)(found)
    return typer.main.get_command(app)


def _outlined() -> None: ...


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. `arguments` without the program's name, None for this process's own.

    Commands that change something leave a line in the audit, also where they fail.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["help"]:  # as git, kubectl and docker have it
        given = [*given[1:], "--help"]
    code = _run(given)
    if changes(given):
        from .access.audit import record

        record(given, code)
    return code


def _run(arguments: list[str]) -> int:
    try:
        if words_of_command(arguments)[:2] != ["config", "check"]:  # it reports a wrong file with all other faults
            load_env_file()
        only = _only(arguments)
        code = program(only, outline=only is None)(arguments, prog_name="trawl", standalone_mode=False)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # the latter is how typer ends when a pipe breaks
        _forget_output()  # `trawl export | head`: the reader has enough
        return DONE
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except Exception as error:
        return _complain(error)
    return code if isinstance(code, int) else DONE


def _forget_output() -> None:
    """What is left in the buffer must not fail again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _only(arguments: list[str]) -> str | None:
    """Return the command that runs, or whose arguments a shell completes; None for the help and for a wrong word."""
    completing = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
    if "_TRAWL_COMPLETE" in os.environ:
        arguments = completing.split()[1:] if completing.endswith(" ") else completing.split()[1:-1]
    words = words_of_command(arguments)
    return words[0] if words and words[0] in COMMANDS else None


def _complain(error: Exception) -> int:
    """Print the error in one line on standard error (with TRAWL_DEBUG=1 also its traceback); returns the exit code."""
    if _shows_tracebacks():
        say(traceback.format_exc().rstrip(), stderr=True)
    if isinstance(error, TyperException):
        if line := refusal(error):  # without one it has shown the help
            complain(f"{_one_line(line)} (trawl --help, trawl COMMAND --help)")
        return WRONG_USE
    if isinstance(error, TrawlError) or _is_of_reader(error, "ReaderError"):
        complain(_one_line(str(error)))
        return WRONG_USE if isinstance(error, ConfigError) or _is_of_reader(error, "SiteError") else FAILED
    if isinstance(error, OSError) and error.errno in _FULL:  # `trawl export posts > file` as well as a file of the command's own
        where = f"{error.filename}: " if error.filename else ""
        complain(f"{where}{error.strerror}: what was to be written is not complete; make room, and repeat the command")
        _forget_output()
        return FAILED
    if isinstance(error, OSError) and error.errno in _FORBIDDEN and error.filename:  # `--install-completion` in a read-only home
        complain(f"{error.filename}: {error.strerror}; nothing more was done")
        return FAILED
    complain(f"internal error: {error!r}; please report it with the traceback that TRAWL_DEBUG=1 shows")
    return FAILED


def _is_of_reader(error: Exception, name: str) -> bool:
    """Return True if the error is of this class of the reader, which is not loaded for that: few commands need it."""
    errors = sys.modules.get("forum_reader.errors")
    return errors is not None and isinstance(error, getattr(errors, name))


def _shows_tracebacks() -> bool:
    if not any(name in os.environ for name in ("TRAWL_DEBUG", "TRAWL_DEBUG_FILE")):
        return False  # nearly always; what reads variables takes longer to load than most errors to happen
    from workers.environment.variables import Tool

    try:
        return Tool.read().debug
    except ConfigError:
        return False


def _one_line(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    sys.exit(main())
