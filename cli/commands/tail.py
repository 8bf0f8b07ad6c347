"""`trawl tail`: new, edited and deleted posts as they are stored."""

from __future__ import annotations

import json
import time
from typing import Annotated

import msgspec
import typer

from cli.access.database import stored_data
from cli.access.names import check_site
from cli.access.values import parse_since
from cli.views.dead import line
from cli.views.output import complain, print_json, say
from forums.events.expression import ROWS, Filter, Subject, Undecided, parse
from forums.storage import StorageError
from forums.storage.read.event_reader import Event, EventLog
from forums.storage.write.event_log import Position
from redis_components.errors import ConfigError, did_you_mean

_LOOK_S = 1.0
_STEP = 500


def tail(
    match: Annotated[
        str | None,
        typer.Option(metavar="FILTER", help="Only what fits this filter, as in a rules file.", show_default=False),
    ] = None,
    site: Annotated[str | None, typer.Option(help="Only posts of this site.", show_default=False)] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND",
            help="Show post, comment, crawler, gap, forum, breaker, fleet or all; may be repeated. Default: posts and comments.",
            show_default=False,
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="WHEN", help="Begin with what was stored then: 2h, 1d, 2026-01-31.", show_default=False),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow/--no-follow", help="Wait for more, until Ctrl-C.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print each event as one line of JSON, with its whole text.")] = False,
) -> int:
    """Show new, edited and deleted posts and comments as they are stored; with `--kind` also what happens to the fleet.

    It reads the database, so it works while the fleet is stopped, and any number of people may follow. Events are kept for
    TRAWL_EVENTS_DAYS.

    **Filters** find keywords in title and text, regular expressions between slashes, and fields: `author:`, `title:`, `text:`,
    `url:`, `site:`, `forum:`, `thread:`, `type:` (new, edited, corrected, deleted, restored, moved; of the fleet also started,
    ended, died, lost, opened, closed, changed) and `row:` (as `--kind`); with `and`, `or`, `not` and parentheses.

    **Examples:**

        trawl tail
        trawl tail --match '(显卡 or /rtx ?50\\d0/) and type:new' --site example
        trawl tail --since 1d --no-follow --json
        trawl tail --kind crawler --kind breaker --kind gap --since 1d
    """
    wanted = parse(match) if match is not None else None
    rows = _rows_of(kind)
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


def _rows_of(kinds: list[str] | None) -> tuple[str, ...]:
    """What `--kind` names. Raises ConfigError."""
    chosen = tuple(kinds or ("post", "comment"))
    for name in chosen:
        if name not in (*ROWS, "all"):
            known = (*ROWS, "all")
            raise ConfigError(f"--kind {name}: there is no such kind; one of {', '.join(known)}{did_you_mean(name, list(known))}")
    return ROWS if "all" in chosen else chosen


def _next(log: EventLog, after: Position) -> list[Event]:
    """What comes after; nothing while the database is away."""
    try:
        return log.read(after, _STEP, fleet=True)
    except StorageError as error:
        complain(f"{error}; it is tried again")
        return []


def _fits(wanted: object, event: Event) -> bool:

    if not isinstance(wanted, Filter):
        return True
    try:
        return wanted.matches(Subject(event))
    except Undecided:
        event.undecided = ["--match"]
        return True


def _show(event: Event, as_json: bool) -> None:

    if as_json:
        print_json(json.loads(msgspec.json.encode(event)))
    else:
        say(line(event))
