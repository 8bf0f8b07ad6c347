"""`trawl events`: follow stored posts, and the outputs of events."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
import typer
from rich.text import Text

from cli.access import redis_client, running_url
from cli.names import check_site, parse_since
from cli.views.options import AsJson, Newest, OnlySite, Since, command_group
from cli.views.output import complain, counted, echo, print_json
from cli.views.tables import Columns, console, show
from forums.events.alerts import alerts_as_rules
from forums.events.cursors import Cursors
from forums.events.expression import ROWS, Filter, Subject, Undecided, parse
from forums.events.rules import Rules, load
from forums.storage import StorageError
from forums.storage.read.event_reader import Event, EventLog
from forums.storage.read.read_sql import stored_data
from forums.storage.write.changes import Position
from redis_components.errors import ConfigError, RedisUnavailable, unknown_name
from redis_components.server.printable import in_one_line
from redis_components.server.url import impatient

_LOOK_S = 1.0
_STEP = 500

app = command_group()


@app.command()
def tail(
    match: Annotated[str | None, typer.Option(metavar="FILTER", help="Only events that fit this filter, as in a rule.")] = None,
    site: OnlySite = None,
    everything: Annotated[bool, typer.Option("--all", help="Also events of crawlers, breakers and the fleet.")] = False,
    since: Since = None,
    follow: Annotated[bool, typer.Option("--follow/--no-follow", help="Wait for more, until Ctrl-C.")] = True,
    as_json: AsJson = False,
) -> int:
    """Show new, edited and deleted posts and comments as they are stored; with `--all` also events of the fleet.

    It reads the database, so it works while the fleet is stopped, and for any number of users at once. --json prints a
    line for each, with its whole text. Events are kept for TRAWL_EVENTS_DAYS.

    **Filters** find keywords in title and text, regular expressions between slashes, and fields: `author:`, `title:`, `text:`,
    `url:`, `site:`, `forum:`, `thread:`, `type:` (new, edited, corrected, deleted, restored, moved; of the fleet also
    started, ended, died, lost, opened, closed, changed) and `row:` (post, comment, crawler, breaker, fleet);
    with `and`, `or`, `not` and parentheses.

    **Examples:**

        trawl events tail
        trawl events tail --match '(显卡 or /rtx ?50\\d0/) and type:new' --site example
        trawl events tail --since 1d --no-follow --json
        trawl events tail --all --match 'row:crawler or row:breaker' --since 1d
    """
    wanted = parse(match) if match is not None else None
    rows = ROWS if everything else ("post", "comment")
    moment = parse_since(since) if since else None
    with stored_data() as database:
        if site is not None:
            check_site(site, stored=database)
        log = EventLog(database)
        after = log.since(moment) if moment else log.end() if follow else log.begin()
        while True:
            events = _next(log, after)
            for event in events:
                if event.row in rows and (site is None or event.site == site) and _fits(wanted, event):
                    _show(event, as_json)
            if events:
                after = events[-1].at
            elif not follow:
                return 0
            else:
                time.sleep(_LOOK_S)


def _next(log: EventLog, after: Position) -> list[Event]:
    """Return the events after a position; none while the database is away."""
    try:
        return log.read(after, _STEP, fleet=True)
    except StorageError as error:
        complain(f"{error}; it is tried again")
        return []


def _fits(wanted: Filter | None, event: Event) -> bool:
    try:
        return wanted is None or wanted(Subject(event))
    except Undecided:
        event.undecided = ["--match"]
        return True


def _show(event: Event, as_json: bool) -> None:
    if as_json:
        print_json(json.loads(msgspec.json.encode(event)))
        return
    for line in _lines(event):
        console().print(Text(line), no_wrap=True, overflow="ellipsis")


def _lines(event: Event) -> list[str]:
    """Return time, type, place, author, and the beginning of the text; below them the address. A terminal shows what fits."""
    is_crawled = event.row in ("post", "comment")
    where = [f"{event.site}/{event.forum}" if event.forum else event.site, event.author or "-"] if is_crawled else [event.site]
    text = ": ".join(filter(None, (event.title, event.text)))
    what = f"{event.type}{'?' if event.undecided else ''} {event.row}"
    about = "  ".join(" ".join(part.split()) for part in (*where, text) if part)
    first = in_one_line(f"{event.stored_at.astimezone():%H:%M:%S}  {what:<16}  {about}")
    return [first, f"  {in_one_line(event.url)}"] if event.url and is_crawled else [first]


@app.command("list")
def list_outputs(as_json: AsJson = False) -> int:
    """Show each output, also those of alerts: events that wait for it, events that it refused, and why it takes nothing now.

    Exit code 1: an output takes nothing.
    """
    rules = rules_file()
    with stored_data() as database:
        log, known, dead = EventLog(database), Cursors(database).all(), Cursors(database).counts()
        rows: list[dict[str, Any]] = []
        for name, options in rules.outputs.items():
            cursor = known.get(name)
            oldest = next(iter(log.read(cursor.after, 1, fleet=True)), None) if cursor else None
            rows.append(
                {
                    "output": name,
                    "kind": options.kind,
                    "waiting": log.waiting(cursor.after) if cursor else None,
                    "refused": dead.get(name, 0),
                    "lost": cursor.lost if cursor else 0,
                    "position": str(cursor.after) if cursor else None,
                    "error": cursor.trouble(oldest, datetime.now(UTC)) if cursor else None,
                }
            )
    columns: Columns = {
        "output": "output",
        "kind": "kind",
        "waiting": lambda row: str(row["waiting"] or 0),
        "refused": "refused",
        "state": lambda row: row["error"] or ("nothing was sent yet" if row["waiting"] is None else "ok"),
    }
    show(rows, columns, as_json)
    for row in () if as_json else rows:
        if row["lost"]:
            lost = counted(row["lost"], "transaction")
            echo(f"{row['output']} was away for longer than TRAWL_EVENTS_DAYS: the events of {lost} are gone.")
    return int(any(row["error"] for row in rows))


@app.command("refused")
def refused(
    output: Annotated[str, typer.Argument(metavar="OUTPUT", help="Name of the output.")],
    limit: Newest = 20,
) -> int:
    """Show the events that an output refused, with its answers. `trawl events replay` sends events again."""
    rules = rules_file()
    check_output(output, rules)
    with stored_data() as database:
        cursors, log = Cursors(database), EventLog(database)
        found = cursors.refused(output, limit)
        reasons = {position: reason for position, _, reason in found}
        for event in log.at(reasons):
            echo(f"{event.position}  {event.type}  {event.id}: {reasons[event.at]}")
    if not found:
        echo(f"Output {output} refused nothing.")
    return 0


@app.command("replay")
def replay(
    output: Annotated[str, typer.Argument(metavar="OUTPUT", help="Name of the output; of the kind webhook.")],
    since: Since = None,
) -> int:
    """Send an output past events again, from a time on. Ids of events stay the same.

    A stream and a file have each event once: read them from their beginning instead.
    """
    rules = rules_file()
    check_output(output, rules)
    if since is None:
        raise ConfigError("give the beginning: --since 2h")
    if rules.outputs[output].kind != "webhook":
        kind = rules.outputs[output].kind
        raise ConfigError(f"{output} is of the kind {kind}, which has each event once: read it from its beginning")
    with stored_data() as database:
        log = EventLog(database)
        to = log.since(parse_since(since))
        if not Cursors(database).move(output, to):
            Cursors(database).create(output, to)
        echo(f"{output} gets {log.waiting(to):,} events again, from {to} on.")
    return 0


def rules_file() -> Rules:
    """Return the rules, with the alerts if a Redis answers. Raises ConfigError where there are no outputs."""
    rules, alerts = load(), Rules({}, {})
    if url := running_url():
        with suppress(RedisUnavailable), redis_client(impatient(url, 2.0)) as client:
            alerts, _ = alerts_as_rules(client)
    if rules is None and not alerts.outputs:
        raise ConfigError("trawl.toml has no outputs: write some (docs/events.md), or name the file in TRAWL_CONFIG")
    return (rules or Rules({}, {})).with_others(alerts)


def check_output(output: str, rules: Rules) -> None:
    """Raise ConfigError for an unknown output."""
    if output not in rules.outputs:
        raise unknown_name("output", output, rules.outputs)
