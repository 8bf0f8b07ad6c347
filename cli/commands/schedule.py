"""`trawl schedule`: the tasks that beat sends, and when; changed while the fleet runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.text import Text

from cli.access import redis_client, running_client
from cli.views.options import AsJson, command_group
from cli.views.output import duration, echo, iso, report
from cli.views.tables import Column, figure, show
from redis_components.errors import ConfigError
from tasks.beat.desk import ScheduleDesk
from workers.state.beats import parse_span

app = command_group()

Name = Annotated[str, typer.Argument(metavar="NAME", help="The entry's name.")]


@app.callback()
def schedule() -> None:
    """Show and change which tasks beat sends, and how often, while the fleet runs.

    Entries in Redis override those of `celeryconfig.py`; the leading beat applies a change within 2 s.

    **Examples:**

        trawl schedule list
        trawl schedule set seed_forums --every 30s
        trawl schedule set nightly --cron "0 3 * * *" --task trawl.seed_forums --kwargs '{"site": "demo", "force": true}'
        trawl schedule disable nightly
        trawl schedule remove nightly
    """


@app.command("list")
def list_entries(as_json: AsJson = False) -> int:
    """Show every entry with its last run and next due time, and why invalid entries are not sent."""
    with running_client(as_json) as client:
        desk = ScheduleDesk(client)
        rows = [row_of(desk, name) for name in desk.names()]
    show(rows, COLUMNS, as_json, whole={"running": True, "leader": desk.beats.leader, "entries": rows})
    if not as_json:
        echo("", f"beat: {desk.beats.sentence()}")
    return 0


@app.command("set")
def change(
    name: Name,
    every: Annotated[str | None, typer.Option(metavar="TIME", help="The interval: 10s, 5m, 2h, 1d.")] = None,
    cron: Annotated[
        str | None, typer.Option(metavar="FIELDS", help="Minute, hour, day of the month, month, day of the week; UTC.")
    ] = None,
    task: Annotated[str | None, typer.Option(metavar="TASK", help="The task to send; required for a new entry.")] = None,
    args: Annotated[str | None, typer.Option(metavar="JSON", help="Positional arguments, as a list.")] = None,
    kwargs: Annotated[str | None, typer.Option(metavar="JSON", help="Keyword arguments, as an object.")] = None,
    as_json: AsJson = False,
) -> int:
    """Change an entry, or add one. Options that are not given keep their values.

    An interval is from 1 s to 366 d. Of the fleet's own entries (reconcile_fleet, store_items) only the interval can be changed,
    from 1 s to 30 s. A cron entry that was due while no beat led is sent once, late.

    **Examples:**

        trawl schedule set seed_forums --every 30s
        trawl schedule set nightly --cron "0 3 * * *" --task trawl.seed_forums --kwargs '{"site": "demo", "force": true}'
    """
    if every is not None and cron is not None:
        raise ConfigError("--every and --cron cannot be combined: give one of them")
    if not re.fullmatch(r"[\w.:/-]{1,100}", name):
        raise ConfigError(f"the name {name!r} must be letters, digits and any of _ - . : / (at most 100)")
    given = {
        "task": task,
        "every_s": parse_span(every) if every is not None else None,
        "cron": cron,
        "args": _json_of(args, list, "--args") if args is not None else None,
        "kwargs": _json_of(kwargs, dict, "--kwargs") if kwargs is not None else None,
    }
    if all(value is None for value in given.values()):
        raise ConfigError("nothing to change: give --every, --cron, --task, --args or --kwargs")
    with open_desk() as desk:
        desk.change(name, **given)
        return _print(desk, name, as_json)


@app.command()
def enable(name: Name, as_json: AsJson = False) -> int:
    """Send this entry again. Missed rounds are not made up."""
    return _switch(name, enabled=True, as_json=as_json)


@app.command()
def disable(name: Name, as_json: AsJson = False) -> int:
    """Do not send this entry until it is enabled."""
    return _switch(name, enabled=False, as_json=as_json)


@app.command()
def remove(name: Name, as_json: AsJson = False) -> int:
    """Remove an added entry; an entry of `celeryconfig.py` gets its values from there again."""
    with open_desk() as desk:
        default = desk.defaults.entries.get(name)
        if not desk.schedules.remove(name):
            if default is None:
                raise desk.unknown(name)
            raise ConfigError(f"{name} is an entry of celeryconfig.py and was not changed: there is nothing to remove")
    report(
        as_json,
        {"entry": name, "removed": default is None},
        f"{name}: {'removed' if default is None else f'back to {default.rhythm}'}",
    )
    return 0


def _switch(name: str, *, enabled: bool, as_json: bool) -> int:
    with open_desk() as desk:
        desk.known(name)
        desk.change(name, enabled=enabled)
        return _print(desk, name, as_json)


def _print(desk: ScheduleDesk, name: str, as_json: bool) -> int:
    entry = desk.schedule.entries[name]
    report(
        as_json,
        row_of(desk, name),
        f"{name}: {entry.task} {entry.rhythm}{'' if entry.enabled else ', disabled'}; beat applies it within 2 s",
    )
    return 0


def _json_of(text: str, kind: type, option: str) -> Any:
    example = '[1, "two"]' if kind is list else '{"site": "demo"}'
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{option} {text!r} is not JSON ({error}): write for example {example}") from None
    if not isinstance(value, kind):
        raise ConfigError(f"{option} {text!r} must be a JSON {'list' if kind is list else 'object'}, as in {example}")
    return value


@contextmanager
def open_desk() -> Iterator[ScheduleDesk]:
    """Yield the schedule. Raises RedisUnavailable for every error of Redis within the block."""
    with redis_client() as client:
        yield ScheduleDesk(client)


def row_of(desk: ScheduleDesk, name: str) -> dict[str, Any]:
    """Return one entry for `--json`; `refused` is the reason why the entry, or a change of it, is left out."""
    found = desk.look(name)
    row: dict[str, Any] = {"entry": name, "refused": found.refused or None}
    if found.entry is None:
        return row
    fields = {field: getattr(found.entry, field) for field in ("task", "every_s", "cron", "args", "kwargs", "enabled", "origin")}
    return {
        **row,
        **fields,
        "last_sent": iso(found.sent_at) if found.sent_at else None,
        "sent_s_ago": round(desk.now - found.sent_at, 1) if found.sent_at else None,
        "next_due": iso(found.due_at) if found.due_at is not None else None,
        "due_in_s": round(found.due_at - desk.now, 1) if found.due_at is not None else None,
    }


COLUMNS = (
    Column("entry", "entry"),
    Column("task", lambda row: _task(row), least=20, rank=4),
    Column("when", lambda row: _when(row), rank=1),
    figure("last sent", lambda row: f"{duration(row['sent_s_ago'])} ago" if row.get("last_sent") else _never(row), rank=2),
    figure("next due", lambda row: _due(row)),
    Column("state", lambda row: _state(row), least=12, rank=3, below=True),
)


def _task(row: dict[str, Any]) -> str:
    if "task" not in row:
        return "-"
    arguments = ", ".join([json.dumps(one) for one in row["args"]] + [f"{k}={json.dumps(v)}" for k, v in row["kwargs"].items()])
    return f"{row['task']}({arguments})" if arguments else str(row["task"])


def _when(row: dict[str, Any]) -> str:
    return "-" if "task" not in row else f"cron {row['cron']}" if row["cron"] else f"every {row['every_s']:g} s"


def _never(row: dict[str, Any]) -> str:
    return "never" if "task" in row else "-"


def _due(row: dict[str, Any]) -> str:
    return "-" if row.get("next_due") is None else "now" if row["due_in_s"] <= 0 else f"in {duration(row['due_in_s'])}"


def _state(row: dict[str, Any]) -> Text:
    if "task" not in row:
        return Text(f"left out: {row['refused']}", style="bold red")
    if row["refused"]:
        return Text(f"the change is left out: {row['refused']}", style="bold red")
    if not row["enabled"]:
        return Text("disabled", style="yellow")
    return Text("" if row["origin"] == "default" else row["origin"], style="dim")
