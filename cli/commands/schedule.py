"""`trawl schedule`: what beat sends, and when; changed while the fleet runs."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

import typer

from cli.access.redis import NOTHING, running_url
from cli.access.values import parse_span
from cli.views.output import echo, print_json
from cli.views.schedule import Desk, open_desk, row_of, table_of
from cli.views.tables import console
from redis_components.errors import ConfigError, RedisUnavailable

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The entry's name.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one line of JSON.")]


@app.callback()
def schedule() -> None:
    """Show and change which tasks beat sends, and how often, while the fleet runs.

    Entries in Redis override those of `celeryconfig.py`; the leading beat applies a change within 2 s.

    **Examples:**

        trawl schedule list
        trawl schedule set seed_forums --every 30s
        trawl schedule set nightly --cron "0 3 * * *" --task trawl.seed_forums --kwargs '{"site": "demo", "force": true}'
        trawl schedule disable nightly
        trawl schedule run nightly
        trawl schedule remove nightly
    """


@app.command("list")
def show(as_json: AsJson = False) -> int:
    """Show every entry with its last run and next due time, and why invalid entries are not sent."""
    if running_url() is None:
        print_json({"running": False}) if as_json else echo(NOTHING)
        return 0
    with open_desk() as desk:
        rows = [row_of(desk, name) for name in desk.names()]
    if as_json:
        print_json({"running": True, "leader": desk.beats.leader, "entries": rows})
    else:
        console().print(table_of(rows), "", f"beat: {desk.beats.sentence()}", sep="\n")
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
        return _said(desk, name, as_json)


@app.command()
def enable(name: Name, as_json: AsJson = False) -> int:
    """Send this entry again. Rounds that it missed are not made up."""
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
    if as_json:
        print_json({"entry": name, "removed": default is None})
    else:
        echo(f"{name}: {'removed' if default is None else f'back to {default.rhythm}'}")
    return 0


@app.command()
def run(name: Name, as_json: AsJson = False) -> int:
    """Send this entry's task now, in addition to its schedule."""
    from kombu.exceptions import OperationalError

    with open_desk() as desk:
        entry = desk.known(name)
        try:
            sent = desk.send(entry)
        except OperationalError as error:
            raise RedisUnavailable(f"the broker cannot be reached ({error}): check TRAWL_BROKER_URL") from error
    if as_json:
        print_json({"entry": name, "task": entry.task, "id": sent.id})
    else:
        echo(f"{name}: sent {entry.task} ({sent.id})")
    return 0


def _switch(name: str, *, enabled: bool, as_json: bool) -> int:

    with open_desk() as desk:
        desk.known(name)
        desk.change(name, enabled=enabled)
        return _said(desk, name, as_json)


def _said(desk: Desk, name: str, as_json: bool) -> int:

    entry = desk.schedule.entries[name]
    if as_json:
        print_json(row_of(desk, name))
    else:
        echo(f"{name}: {entry.task} {entry.rhythm}{'' if entry.enabled else ', disabled'}; beat takes it up within 2 s")
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
