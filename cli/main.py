"""The command `trawl`: its commands, and one place where every error becomes one line and an exit code.

| exit code | meaning                                                              |
|-----------|----------------------------------------------------------------------|
| 0         | done                                                                 |
| 1         | failed: it could not be done now                                     |
| 2         | wrong use: correct an option, a name, a setting or a file            |
| 130       | Ctrl-C                                                               |

Only the module of the command that runs is imported. The list of commands, their completion and the message for a wrong word
are made from `COMMANDS`, without any of their modules.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

from redis_components import __version__
from redis_components.errors import ConfigError, TrawlError
from redis_components.server.variables import load_env_file, variable

from .command_table import COMMANDS, in_present_words, is_changing, short_help
from .views.options import prepare_typer
from .views.output import complain, echo

DONE, FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130
_INSTALL = "pip install trawl-fleet trawl-reader, and do not set TRAWL_APPLICATION"
APPLICATION = "The application"
_FULL = {errno.ENOSPC, errno.EDQUOT}


def _version(asked: bool) -> None:
    if asked:
        echo(f"trawl {__version__}")
        raise typer.Exit


class NotInstalled(ConfigError):
    """A command of an application that is not there; the message names the fix."""


def trawl(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Run a crawl fleet: Celery launches and supervises Scrapy crawlers that share one lossless frontier in Redis.

    Without TRAWL_REDIS_URL, `trawl` starts and stops a private Redis. Sites are declared in `sites/*.toml`; all data is stored
    in `data/`. Exit codes: 0 done, 1 failed, 2 wrong use, 130 Ctrl-C. TRAWL_DEBUG=1 shows the traceback of an error, NO_COLOR=1
    turns colours off, `trawl --install-completion` completes commands in bash, zsh and fish.
    """


def program(only: str | None = None, outline: bool = False) -> Any:
    """Return the group of all commands, or of `only`. With `outline` they have a name and a line of help, but no options."""
    return _program(only, outline)


@cache
def _program(only: str | None, outline: bool) -> Any:
    prepare_typer()
    app = typer.Typer(
        name="trawl",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(trawl)
    for name in (only,) if only is not None else dict.fromkeys((*COMMANDS, *_more_commands())):
        panel, place, line = COMMANDS.get(name, (APPLICATION, "", ""))
        if outline:
            app.command(name, rich_help_panel=panel, help=line)(_outlined)
            continue
        place = f"cli.commands.{place}" if place else _place_of(name)
        module, _, function = place.rpartition(".")
        found = getattr(import_module(module), function)
        if isinstance(found, typer.Typer):
            if not (found.registered_callback or isinstance(found.info.help, str)):
                found.info.help = line
            app.add_typer(found, name=name, rich_help_panel=panel)
        else:
            app.command(name, rich_help_panel=panel)(found)
    return typer.main.get_command(app)


def _outlined() -> None: ...


def _of_application() -> Mapping[str, str]:
    """Return the commands that the application brings, with the places of their functions."""
    from workers.application import application

    return application().commands()


def _more_commands() -> Mapping[str, str]:
    """Return the commands of another application than the forum crawl, whose words are in the table; that loads redis-py."""
    return _of_application() if variable("TRAWL_APPLICATION") else {}


def _place_of(name: str) -> str:
    if name not in (found := _of_application()):
        raise NotInstalled(f"`trawl {name}` belongs to the forum crawl, which this fleet does not have: {_INSTALL}")
    return found[name]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code. `arguments` without the program's name, None for this process's own.

    Commands that change something leave a line in the audit, also where they fail.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if text := short_help(given):
        echo(text, end="")
        return DONE if given else WRONG_USE
    if given[:1] == ["help"]:  # as git, kubectl and docker have it
        given = ["--help"] if given[1:] == ["all"] else [*given[1:], "--help"]
    given, warning = in_present_words(given)
    if warning:
        complain(warning)
    code = _run(given)
    if is_changing(given):
        from .commands.audit import record

        record(given, code)
    return code


def _run(arguments: list[str]) -> int:
    try:
        if arguments[:2] != ["config", "check"]:  # it reports a wrong file with all other faults
            load_env_file()
        only = _only(arguments)
        code = program(only, outline=only is None)(arguments, prog_name="trawl", standalone_mode=False)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # typer raises SystemExit when a pipe breaks
        _forget_output()  # `trawl export | head`: the reader has enough
        return DONE
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except Exception as error:
        return _complain(error)
    return code if isinstance(code, int) else DONE


def _forget_output() -> None:
    """Send the rest of the buffer to /dev/null, so that it does not fail again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _only(arguments: list[str]) -> str | None:
    """Return the command that runs, or whose arguments a shell completes; None for the help and for a wrong word."""
    completing = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
    if "_TRAWL_COMPLETE" in os.environ:
        arguments = completing.split()[1:] if completing.endswith(" ") else completing.split()[1:-1]
    return arguments[0] if arguments and (arguments[0] in COMMANDS or arguments[0] in _more_commands()) else None


def _complain(error: Exception) -> int:
    """Print the error in one line on standard error (with TRAWL_DEBUG=1 also its traceback); return the exit code."""
    with suppress(ConfigError):  # of TRAWL_DEBUG_FILE
        if variable("TRAWL_DEBUG") not in (None, "", "0"):
            echo(traceback.format_exc().rstrip(), stderr=True)
    if isinstance(error, TyperException):
        if line := error.format_message():  # without one typer has shown the help
            complain(f"{_one_line(line)} (trawl --help, trawl COMMAND --help)")
        return WRONG_USE
    if isinstance(error, TrawlError) or _is_of_reader(error, "ReaderError"):
        complain(_one_line(str(error)))
        return WRONG_USE if isinstance(error, ConfigError) or _is_of_reader(error, "SiteError") else FAILED
    if isinstance(error, OSError) and error.errno in _FULL:  # `trawl export posts > file` as well as a file of the command's own
        where = f"{error.filename}: " if error.filename else ""
        complain(f"{where}{error.strerror}: the output is not complete; make room, and repeat the command")
        _forget_output()
        return FAILED
    if isinstance(error, OSError) and error.filename:  # a file of the arguments, or `--install-completion` in a read-only home
        complain(f"{error.filename}: {error.strerror}: name a file that can be read, or a place that this user may write")
        return WRONG_USE
    complain(f"internal error: {error!r}; please report it with the traceback that TRAWL_DEBUG=1 shows")
    return FAILED


def _is_of_reader(error: Exception, name: str) -> bool:
    """Return True if the error is of this class of the reader, which is loaded by few commands."""
    errors = sys.modules.get("forum_reader.errors")
    return errors is not None and isinstance(error, getattr(errors, name))


def _one_line(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    sys.exit(main())
