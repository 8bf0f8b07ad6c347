"""The command `trawl`: its commands, and one place where every error becomes one line and an exit code.

| exit code | meaning                                                              |
|-----------|----------------------------------------------------------------------|
| 0         | done                                                                 |
| 1         | failed: what was asked for could not be done now                     |
| 2         | wrong use: an option, a name, a setting or a file has to be corrected |
| 130       | Ctrl-C                                                               |

Only the command that is asked for is imported. The modules of commands are cheap to import, too: what talks to Redis or a
database is imported when a command runs, so that `trawl --help` answers at once.
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

COMMANDS = {  # in the order of the help: panel, and the function or group of commands in `cli.commands`
    "up": (RUN, "up.up"),
    "api": (RUN, "api.api"),
    "services": (RUN, "services.app"),
    "scale": (RUN, "scale.scale"),
    "autoscale": (RUN, "autoscale.autoscale"),
    "roll": (RUN, "roll.roll"),
    "limit": (RUN, "limit.limit"),
    "pause": (RUN, "hold.pause"),
    "drain": (RUN, "hold.drain"),
    "stop": (RUN, "hold.stop"),
    "resume": (RUN, "hold.resume"),
    "crawl": (RUN, "crawl.crawl"),
    "deploy": (RUN, "deploy.deploy"),
    "versions": (RUN, "versions.app"),
    "run": (RUN, "run.run"),
    "jobs": (RUN, "jobs.app"),
    "status": (LOOK, "status.status"),
    "forums": (LOOK, "forums.forums"),
    "nodes": (LOOK, "nodes.nodes"),
    "logs": (LOOK, "logs.logs"),
    "history": (LOOK, "history.history"),
    "lanes": (LOOK, "lanes.lanes"),
    "health": (LOOK, "health.health"),
    "audit": (LOOK, "audit.audit"),
    "doctor": (LOOK, "doctor.doctor"),
    "bot": (LOOK, "bot.app"),
    "seed": (CHANGE, "seed.seed"),
    "seed-urls": (CHANGE, "seed_urls.seed_urls"),
    "rescan": (CHANGE, "rescan.rescan"),
    "backfill": (CHANGE, "rescan.backfill"),
    "forget": (CHANGE, "forget.forget"),
    "dupefilter": (CHANGE, "dupefilter.dupefilter"),
    "schedule": (CHANGE, "schedule.app"),
    "dead": (CHANGE, "dead.app"),
    "tail": (LOOK, "tail.tail"),
    "notify": (LOOK, "notify.app"),
    "events": (DATA, "events.app"),
    "why": (LOOK, "why.why"),
    "export": (DATA, "export.export"),
    "query": (DATA, "query.query"),
    "sql": (DATA, "query.sql"),
    "consume": (DATA, "consume.consume"),
    "items": (LOOK, "items.items"),
    "reparse": (DATA, "reparse.reparse"),
    "backup": (DATA, "backup.backup"),
    "restore": (DATA, "backup.restore"),
    "db": (DATA, "db.app"),
    "migrate": (DATA, "migrate.app"),
    "init": (SITES, "init.init"),
    "sites": (SITES, "sites.app"),
    "capacity": (SITES, "capacity.capacity"),
    "systemd": (SITES, "systemd.systemd"),
    "upgrade": (SITES, "upgrade.upgrade"),
    "read": (SITES, "read.read"),
    "acl": (SITES, "acl.acl"),
    "config": (SITES, "config.app"),
}


def program(only: str | None = None, outline: bool = False) -> Any:
    """All commands, or the one that is asked for. With `outline` they have names and descriptions but no options: enough for the
    list of commands, and made in half the time.
    """
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
        panel, place = COMMANDS[name]
        module, _, what = place.partition(".")
        found = getattr(import_module(f".commands.{module}", __package__), what)
        if outline:
            found = _outlined(found)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name, rich_help_panel=panel)
        else:
            app.command(name, rich_help_panel=panel)(found)
    return typer.main.get_command(app)


def _outlined(found: Any) -> Any:
    """A command or a group that has nothing but its description."""
    if isinstance(found, typer.Typer):
        of_callback = getattr(found.registered_callback, "callback", None)
        return typer.Typer(help=found.info.help if isinstance(found.info.help, str) else of_callback and of_callback.__doc__)

    def named() -> None: ...

    named.__doc__ = found.__doc__
    return named


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
        load_env_file()
        code = program(_only(arguments), outline=_asks_for_the_list(arguments))(
            arguments, prog_name="trawl", standalone_mode=False
        )
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
    """The command that is asked for; None where all of them are: for the help, a typing error, a shell that completes."""
    words = words_of_command(arguments)
    return words[0] if words and words[0] in COMMANDS and "_TRAWL_COMPLETE" not in os.environ else None


def _asks_for_the_list(arguments: list[str]) -> bool:
    return arguments in ([], ["-h"], ["--help"]) and "_TRAWL_COMPLETE" not in os.environ


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
