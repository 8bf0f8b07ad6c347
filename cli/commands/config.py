"""`trawl config`: the environment variables as each process reads them, and `trawl.toml`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from cli.access import redis_client, running_url
from cli.views.environment import Row, rows, unknown
from cli.views.options import AsJson, command_group
from cli.views.output import complain, counted, echo, print_json, report
from cli.views.tables import show
from redis_components.errors import ConfigError, RedisUnavailable
from redis_components.server.url import impatient

from .acl import acl
from .init import systemd

app = command_group()
app.command()(acl)
app.command()(systemd)


@app.callback()
def config() -> None:
    """Show, check and convert the configuration.

    **Examples:**

        trawl config show
        trawl config check
        trawl config convert
    """


@app.command("show")
def show_variables(as_json: AsJson = False) -> int:
    """Show every TRAWL_* variable with its value and where that comes from; passwords are masked.

    A value comes from the environment, from the file that NAME_FILE names, from `.env` next to `scrapy.cfg`, from [fleet] of
    `trawl.toml`, or is the default. `trawl services show SERVICE` shows the same of a service's values. Alerts stand at the end.
    Wrong values and unknown names are reported on standard error; with a wrong value the exit code is 2.

    **Examples:**

        trawl config show
        trawl config show --json | jq '.[] | select(.origin != "default")'
    """
    found = [*rows(), *_alerts()]
    columns: dict[str, Any] = {"variable": "variable", "value": lambda row: row.value or ("wrong" if row.fault else "")}
    show(found, columns | {"origin": "origin"}, as_json)
    wrong = [row.fault for row in found if row.fault]
    for line in (*wrong, *unknown()):
        complain(line)
    return 2 if wrong else 0


def _alerts() -> list[Row]:
    """Return the alerts, which are made at run time, if there is a Redis that answers."""
    from forums.state.alerts import Alerts, shown_address

    if (url := running_url()) is None:
        return []
    try:
        with redis_client(impatient(url, 2.0)) as client:
            found = Alerts(client).all()
    except RedisUnavailable:
        return []
    return [
        Row(
            variable=f"alert {number}",
            value=f"{one.match}{f' at {one.site}' if one.site else ''}, to {shown_address(one.to)}",
            origin=f"trawl alert, {one.by}",
        )
        for number, one in found.items()
    ]


@app.command()
def check(as_json: AsJson = False) -> int:
    """Check variables, `trawl.toml` and site files, and report each fault in one line. Exit code 1: there are faults.

    **Examples:**

        trawl config check
        trawl config check --json | jq -r '.faults[]'
    """
    faults = list(dict.fromkeys(_faults()))
    if as_json:
        print_json({"faults": faults})
    elif faults:
        for line in (*faults, f"{counted(len(faults), 'fault')} in the configuration"):
            complain(line)
    else:
        echo("variables, trawl.toml and site files are right")
    return 1 if faults else 0


def _faults() -> Iterator[str]:
    from fleet_operations.jobs.groups import limits_of_quotas
    from redis_components.server.variables import load_env_file
    from workers.application import application
    from workers.fleet.sizes import limits_in_file, services_in_file
    from workers.state.beats import schedule_in_file

    yield from _lines_of(load_env_file)
    yield from (row.fault for row in rows() if row.fault)
    yield from unknown()
    for read in (services_in_file, limits_in_file, limits_of_quotas):
        yield from _lines_of(read)
    of_file = schedule_in_file()[1]
    for faults in of_file.values():
        yield from faults.splitlines()
    yield from _faults_of_schedule(of_file)
    yield from application().faults()


def _lines_of(read: Callable[[], Any]) -> list[str]:
    try:
        read()
    except ConfigError as error:
        return str(error).splitlines()
    return []


def _faults_of_schedule(known: Collection[str]) -> list[str]:
    """Return the faults of all entries but the known ones."""
    from redis_components.server.variables import faults_are_reported
    from tasks.app import app as celery
    from tasks.beat.schedule import checker, defaults_of, effective

    try:
        with faults_are_reported():
            celery.loader.import_default_modules()
            refused = effective(defaults_of(celery.conf.beat_schedule), {}, checker(celery.tasks)).refused
    except (ConfigError, ImportError) as error:  # TRAWL_TASK_MODULES
        return [str(error)]
    return [reason for name, reason in refused.items() if name not in known]


@app.command()
def convert(as_json: AsJson = False) -> int:
    """Move the tables of `services.toml` and `events.toml` into `trawl.toml`, comments included. The old files get the ending
    `.old`.

    **Examples:**

        trawl upgrade
    """
    from redis_components.server.fleet_file import FILE, OLD_FILES, config_file
    from redis_components.server.variables import project_dir

    target = config_file() or project_dir() / FILE
    old = {one: path for one in OLD_FILES if (path := one.path())}
    text = _joined([(path, one.tables) for one, path in old.items()], target)
    if old:
        fresh = target.with_name(f"{target.name}.new")
        fresh.write_text(text, "utf-8")
        fresh.replace(target)
    for path in old.values():
        path.rename(path.with_name(f"{path.name}.old"))
    moved = [f"{path}: moved into {target}; it is {path.name}.old now" for path in old.values()]
    unset = [f"unset {one.variable}" for one, path in old.items() if path.name != one.name or path.parent != project_dir()]
    done = {"file": str(target), "converted": [str(path) for path in old.values()]}
    report(as_json, done, *(moved or ["there is no old file to convert"]), *unset)
    return 0


def _joined(old: list[tuple[Path, tuple[str, ...]]], target: Path) -> str:
    """Return the text of `target` and the old files, one after the other. Raises ConfigError where that changes the meaning."""
    import tomllib

    from redis_components.server.fleet_file import TABLES, document

    texts: list[str] = []
    meant: dict[str, Any] = {}
    for path, tables in [(target, TABLES)] * target.is_file() + old:
        found = document(path, tables)
        if both := meant.keys() & found.keys():
            raise ConfigError(f"{target} has [{min(both)}] already: move the tables of {path} by hand")
        meant |= found
        texts.append(path.read_text("utf-8").strip("\n") + "\n")
    for joined in ("\n".join(texts), "\n".join(texts[::-1])):  # keys outside of a table have to come first
        with suppress(tomllib.TOMLDecodeError):
            if tomllib.loads(joined) == meant:
                return joined
    files = " and ".join(str(path) for path, _ in old)
    raise ConfigError(f"{files}: there are keys outside of a table: write each table as [TABLE.NAME], then convert again")
