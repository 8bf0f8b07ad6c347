"""`trawl events`: the outputs of the rules file, how far each has been told, what they refused, and telling them again."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from cli.access.redis import redis_client
from cli.access.values import parse_since
from cli.views.output import counted, echo, print_json
from cli.views.tables import console, plain_table
from forums.events.cursors import Cursors
from forums.events.rules import Rules, load
from forums.storage.existing import stored_data
from forums.storage.read.event_reader import EventLog
from forums.storage.write.event_log import Position
from redis_components.errors import ConfigError, did_you_mean

from .tail import tail

app = typer.Typer(
    no_args_is_help=True, help="Follow stored posts; show the outputs of events, and send refused or past events again."
)
app.command()(tail)


@app.command("list")
def list_outputs(as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False) -> int:
    """Show each output of the rules file: events that wait for it, events that it refused, and why it takes nothing now.

    Ends with 1 where one takes nothing.
    """
    rules = rules_file()
    with stored_data() as database:
        log, known, dead = EventLog(database), Cursors(database).all(), Cursors(database).counts()
        rows = []
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
    if as_json:
        print_json(rows)
    else:
        table = plain_table("output", "kind", "waiting", "refused", "state")
        for row in rows:
            state = str(row["error"]) if row["error"] else "not told of anything yet" if row["waiting"] is None else "ok"
            table.add_row(str(row["output"]), str(row["kind"]), str(row["waiting"] or 0), str(row["refused"]), state)
        console().print(table)
        for row in rows:
            if row["lost"]:
                lost = counted(int(str(row["lost"])), "transaction")
                echo(f"{row['output']} was away for longer than TRAWL_EVENTS_DAYS: the events of {lost} are gone.")
    return int(any(row["error"] for row in rows))


@app.command("refused")
def refused(
    output: Annotated[str, typer.Argument(metavar="OUTPUT", help="Name of the output.")],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="Show at most this many.")] = 20,
    again: Annotated[bool, typer.Option("--again", help="Hand them over again, all of them.")] = False,
) -> int:
    """Show the events that an output refused, with its answers, or hand them over again."""
    rules = rules_file()
    check_output(output, rules)
    with stored_data() as database:
        cursors, log = Cursors(database), EventLog(database)
        found = cursors.refused(output, 10_000 if again else limit)
        if again:
            return _again(output, rules, cursors, log)
        reasons = {position: reason for position, _, reason in found}
        for event in log.at(reasons):
            echo(f"{event.position}  {event.type}  {event.id}: {reasons[event.at]}")
    if not found:
        echo(f"Output {output} refused nothing.")
    return 0


@app.command("replay")
def replay(
    output: Annotated[str, typer.Argument(metavar="OUTPUT", help="Name of the output; of the kind webhook.")],
    since: Annotated[
        str | None, typer.Option(metavar="WHEN", help="From what was stored then: 2h, 1d, 2026-01-31.", show_default=False)
    ] = None,
    after: Annotated[
        str | None, typer.Option(metavar="POSITION", help="From after this position, as 4711-3.", show_default=False)
    ] = None,
) -> int:
    """Tell an output again what it was told before, from a time or a position on. Ids of events stay the same.

    A stream and a file have each event once: read those from their beginning instead.
    """
    rules = rules_file()
    check_output(output, rules)
    if (since is None) == (after is None):
        raise ConfigError("say from where: either --since 2h or --after 4711-3")
    if rules.outputs[output].kind != "webhook":
        kind = rules.outputs[output].kind
        raise ConfigError(f"{output} is of the kind {kind}, which has each event once: read it from its beginning")
    with stored_data() as database:
        log = EventLog(database)
        to = Position.parse(after) if after is not None else log.since(parse_since(since or ""))
        if not Cursors(database).move(output, to):
            Cursors(database).create(output, to)
        echo(f"{output} is told again of {log.waiting(to):,} events, from {to} on.")
    return 0


def _again(output: str, rules: Rules, cursors: Cursors, log: EventLog) -> int:
    from forums.events.publish import redeliver

    with redis_client() as client:
        taken, left = redeliver(output, rules, client, cursors, log)
    echo(f"{taken:,} events were taken, {left:,} are still refused.")
    return int(left > 0)


def rules_file() -> Rules:
    """Raises ConfigError where there is no rules file."""
    if (rules := load()) is None:
        raise ConfigError("trawl.toml has no outputs: write some (docs/events.md), or name the file in TRAWL_CONFIG")
    return rules


def check_output(output: str, rules: Rules) -> None:

    if output not in rules.outputs:
        known, hint = ", ".join(rules.outputs) or "none", did_you_mean(output, list(rules.outputs))
        raise ConfigError(f"there is no output {output!r:.100}; the rules file has {known}{hint}")
