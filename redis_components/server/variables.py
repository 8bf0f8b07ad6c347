"""Look-up of `TRAWL_*` variables: in the environment, in a file that `<name>_FILE` names, or in the project's `.env`.

    TRAWL_REDIS_URL=redis://host          the value
    TRAWL_REDIS_URL_FILE=/run/secrets/x   a file with the value, as Docker and Kubernetes mount secrets; read each time

`.env` lies next to `scrapy.cfg`, and TRAWL_ENV_FILE names another file (empty: none). A program reads it once, when it starts:
its variables enter the process's environment, where they are not set yet, so that child processes have the same values.

Without the fleet's packages `.env` is read where python-dotenv is installed.

`RENAMED` has the names of the release before: a variable under its old name is still read, with a warning.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from io import StringIO
from pathlib import Path
from urllib.parse import unquote

from redis_components.errors import ConfigError, did_you_mean

ENV_FILE = "TRAWL_ENV_FILE"
RENAMED = {
    "TRAWL_DETAIL_ROOM": "TRAWL_DETAIL_CRAWLERS",
    "TRAWL_JOBS_KEEP": "TRAWL_JOB_RETENTION_S",
    "TRAWL_LIST_ROOM": "TRAWL_LIST_CRAWLERS",
    "TRAWL_MAX_TASKS": "TRAWL_MAX_QUEUED_THREADS",
    "TRAWL_READ_APART_S": "TRAWL_PARSE_TIMEOUT_S",
    "TRAWL_SHUTDOWN_GRACE": "TRAWL_SHUTDOWN_GRACE_S",
    "TRAWL_TASKS": "TRAWL_TASK_MODULES",
}
"""The name of each variable by its old one, which is read for one release."""
IN_FILE = (
    *("allow_private", "application", "events_days", "exporter_hosts", "job_retention_s"),
    *("log_files", "log_format", "log_level", "log_max_mb", "log_stream", "max_pending", "max_queued_threads", "parse_timeout_s"),
    *("shutdown_grace_s", "signing_max_age", "task_modules", "thread_records"),
)
"""Variables that may stand in [fleet] of `trawl.toml`: neither secrets nor addresses, and alike on all nodes."""
_OLD_NAMES = {new: old for old, new in RENAMED.items()}
_AS_READ = "_TRAWL_AS_READ"
"""Holds the name of `.env`, and a digest of each variable as a program and those that it started have read it."""
_from_env_file: dict[str, tuple[str, Path]] = {}  # text and file; a value that was set since comes from the environment
_warned: set[str] = set()
_are_reported = [False]
log = logging.getLogger(__name__)


def project_dir() -> Path:
    """Return the folder of the nearest `scrapy.cfg` at or above the working directory, else the working directory."""
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / "scrapy.cfg").is_file()), here)


def variable(name: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the value, None where there is none. Raises ConfigError for a file that cannot be read, and for two values."""
    name = _warned_of(name, environment) or name
    text, file = environment.get(name), environment.get(f"{name}_FILE")
    if not file:
        return text
    if text:
        raise ConfigError(f"{name} and {name}_FILE are both set: unset one of them")
    return _content(Path(file).expanduser(), f"{name}_FILE={file!r}").rstrip("\r\n")


def origin(name: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return the source of the value for display: `environment`, `file /run/secrets/x`, `/project/.env`; "" without a value."""
    name = _old_name(name, environment) or name
    if not environment.get(name):
        file = environment.get(f"{name}_FILE")
        return f"file {file}" if file else ""
    text, path = _from_env_file.get(name, ("", None))
    return str(path) if environment[name] == text else "environment"


def _old_name(name: str, environment: Mapping[str, str]) -> str:
    """Return the old name under which the variable is set; "" where it has none, or is set under its own name."""
    old = _OLD_NAMES.get(name, "")
    return old if old and _is_set(old, environment) and not _is_set(name, environment) else ""


def _warned_of(name: str, environment: Mapping[str, str]) -> str:
    """Return the result of `_old_name`, of which one warning is logged in each process."""
    old = _old_name(name, environment)
    if old and old not in _warned:
        _warned.add(old)
        log.warning("%s is read as %s, its new name: rename it", old, name)
    return old


def _is_set(name: str, environment: Mapping[str, str]) -> bool:
    return name in environment or f"{name}_FILE" in environment


def load_env_file() -> None:
    """Enter the variables of `.env` into the environment. Call it when a program starts, before a variable is read.

    [fleet] of `trawl.toml` is entered as well, below both. Variables with an old name get their new one, so that child processes
    warn of none. Raises ConfigError for a file that cannot be read, is malformed, or belongs to another user and is not named.
    """
    for name, text in _in_file().items():
        twin = name.removesuffix("_FILE") if name.endswith("_FILE") else f"{name}_FILE"
        if not _is_set(RENAMED.get(name.removesuffix("_FILE"), name), os.environ) and not {name, twin} & os.environ.keys():
            os.environ[name] = text
            _from_env_file[name] = text, _env_file()
    _enter_new_names()
    _enter_fleet_table()
    _note_as_read()


def _note_as_read() -> None:
    """Keep digests of what the files have in the environment, unless a parent process did: its values count here, too."""
    place, inherited = str(_env_file()), os.environ.get(_AS_READ, "")
    if not inherited.startswith(f"{place}\n"):
        digests = (f"{name}={_digest(text)}" for name, text in _present().items())
        os.environ[_AS_READ] = "\n".join((place, *digests))


def changed_variables() -> list[str]:
    """Return the variables of `.env` and [fleet] that have changed since this program, or the one that started it, has read them.

    A variable that the environment had before is not in use from the file, so it does not count. Raises ConfigError.
    """
    if _AS_READ not in os.environ:
        return []
    then = dict(line.split("=", 1) for line in os.environ[_AS_READ].split("\n")[1:])
    now = {name: _digest(text) for name, text in _present().items()}
    return sorted(
        name
        for name in then.keys() | now.keys()
        if then.get(name) != now.get(name) and (name not in os.environ or _digest(os.environ[name]) == then.get(name))
    )


def _present() -> dict[str, str]:
    """Return the variables that `.env` and [fleet] have now."""
    from .fleet_file import declared

    found = declared("fleet")
    in_table = {f"TRAWL_{key.upper()}": _as_text(value) or "" for key, value in found.tables["fleet"].items()} if found else {}
    return in_table | {RENAMED.get(name, name): text for name, text in _in_file().items()}


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def _enter_new_names() -> None:
    for new in _OLD_NAMES:
        if old := _warned_of(new, os.environ):
            for end in ("", "_FILE"):
                if f"{old}{end}" in os.environ:
                    os.environ[f"{new}{end}"] = os.environ.pop(f"{old}{end}")
            if old in _from_env_file:
                _from_env_file[new] = _from_env_file.pop(old)


def _enter_fleet_table() -> None:
    """Enter the variables of the table [fleet] in `trawl.toml` that are not set."""
    from .fleet_file import declared, faulty  # parses TOML; most programs of the frontier have no such file

    if (found := declared("fleet")) is None:
        return
    faults = []
    for key, value in found.tables["fleet"].items():
        name, text = f"TRAWL_{key.upper()}", _as_text(value)
        if key not in IN_FILE:
            faults.append(f"fleet.{key}: unknown, or not for a file{did_you_mean(key, IN_FILE)}")
        elif text is None:
            faults.append(f"fleet.{key}: must be a text, a number, true or false, or a list of texts")
        elif not _is_set(name, os.environ):
            os.environ[name] = text
            _from_env_file[name] = text, found.file
    if faults and not _are_reported[-1]:
        raise faulty(found.file, faults)


@contextmanager
def faults_are_reported() -> Iterator[None]:
    """Let `load_env_file` go on in spite of faults in [fleet], for a check that reports them with all others."""
    _are_reported.append(True)
    try:
        yield
    finally:
        _are_reported.pop()


def _as_text(value: object) -> str | None:
    """Return a value of TOML as a variable has it; None for one that no variable can have."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, list) and all(isinstance(one, str) and "," not in one for one in value):
        return ",".join(value)
    return str(value) if isinstance(value, str | int | float) and "\0" not in str(value) else None


def _env_file() -> Path:
    named = os.environ.get(ENV_FILE)
    return Path(named).expanduser().absolute() if named else project_dir() / ".env"


def _in_file() -> dict[str, str]:
    """Return the variables of `.env`; none where there is no such file. Raises ConfigError."""
    named, path = os.environ.get(ENV_FILE), _env_file()
    return _variables(path, named) if named or (named is None and path.is_file()) else {}


def _variables(path: Path, named: str | None) -> dict[str, str]:
    text = _content(path, f"{ENV_FILE}={named!r}" if named else str(path))
    if not named and (owner := path.stat().st_uid) not in (0, os.getuid()):
        raise ConfigError(
            f"{path} belongs to another user ({owner}): set {ENV_FILE} to its name to use it, to nothing to go on without it"
        )
    try:
        from dotenv import dotenv_values
        from dotenv.parser import parse_stream
    except ImportError:
        if named:
            raise ConfigError(f"{ENV_FILE}={named!r}: python-dotenv is not installed: pip install python-dotenv") from None
        return {}
    for line in parse_stream(StringIO(text)):
        if line.error or (line.key is not None and line.value is None):
            raise ConfigError(f"{path}, line {line.original.line}: must be of the form NAME=value, a comment, or empty")
    return {name: value or "" for name, value in dotenv_values(stream=StringIO(text)).items()}


def _content(path: Path, who: str) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ConfigError(f"{who}: the file cannot be read ({reason}): correct its name or permissions, or unset it") from None


EXAMPLE = "change-me"
"""The password of `deploy/.env.example`."""
_SECRET_NAMES = (
    *("TRAWL_REDIS_URL", "TRAWL_BROKER_URL", "TRAWL_DATABASE_URL", "TRAWL_REDIS_PASSWORD", "TRAWL_FLOWER_AUTH"),
    *("FLOWER_BASIC_AUTH", "REDISCLI_AUTH", "TRAWL_API_READ_TOKEN", "TRAWL_API_ACT_TOKEN"),
    "TRAWL_SIGNING_KEY",
)
_WORD = re.compile(r"(?<![\w-])change-me(?![\w-])", re.IGNORECASE)


def example_secrets(environment: Mapping[str, str]) -> list[str]:
    """Return the variables with the example's password. Raises ConfigError for a value's file that cannot be read."""
    return [name for name in _SECRET_NAMES if _WORD.search(unquote(variable(name, environment) or ""))]


def refuse_example_secrets(environment: Mapping[str, str]) -> None:
    """Raise ConfigError for a password that was copied from the example and not changed."""
    if found := example_secrets(environment):
        raise ConfigError(
            f"{', '.join(found)}: the password is {EXAMPLE!r}, as in deploy/.env.example, which everybody knows:"
            " write one of your own into .env, for example from openssl rand -hex 24"
        )
