"""`trawl events tail`: new, edited and deleted posts as they are stored."""

from __future__ import annotations

import json
import shutil
import sys
import time
from typing import Annotated

import msgspec
import typer
from rich.cells import cell_len, set_cell_size

from cli.access.names import check_site
from cli.access.values import parse_since
from cli.views.options import AsJson, OnlySite, Since
from cli.views.output import PIPE_WIDTH, complain, echo, print_json
from forums.events.expression import ROWS, Filter, Subject, Undecided, parse
from forums.storage import StorageError
from forums.storage.existing import stored_data
from forums.storage.read.event_reader import Event, EventLog
from forums.storage.write.event_log import Position
from redis_components.errors import ConfigError, did_you_mean
from redis_components.server.printable import in_one_line

_LOOK_S = 1.0
_STEP = 500
_NARROWEST = 20


def tail(
    match: Annotated[
        str | None,
        typer.Option(metavar="FILTER", help="Only events that fit this filter, as in a rule.", show_default=False),
    ] = None,
    site: OnlySite = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND",
            help="Show post, comment, crawler, gap, forum, breaker, fleet or all; may be repeated. Default: posts and comments.",
            show_default=False,
        ),
    ] = None,
    since: Since = None,
    follow: Annotated[bool, typer.Option("--follow/--no-follow", help="Wait for more, until Ctrl-C.")] = True,
    as_json: AsJson = False,
) -> int:
    """Show new, edited and deleted posts and comments as they are stored; with `--kind` also events of the fleet.

    It reads the database, so it works while the fleet is stopped, and for any number of users at once. --json prints a
    line for each, with its whole text. Events are kept for TRAWL_EVENTS_DAYS.

    **Filters** find keywords in title and text, regular expressions between slashes, and fields: `author:`, `title:`, `text:`,
    `url:`, `site:`, `forum:`, `thread:`, `type:` (new, edited, corrected, deleted, restored, moved; of the fleet also started,
    ended, died, lost, opened, closed, changed) and `row:` (as `--kind`); with `and`, `or`, `not` and parentheses.

    **Examples:**

        trawl events tail
        trawl events tail --match '(显卡 or /rtx ?50\\d0/) and type:new' --site example
        trawl events tail --since 1d --no-follow --json
        trawl events tail --kind crawler --kind breaker --kind gap --since 1d
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
    """Return the kinds of `--kind`. Raises ConfigError."""
    chosen = tuple(kinds or ("post", "comment"))
    for name in chosen:
        if name not in (*ROWS, "all"):
            known = (*ROWS, "all")
            raise ConfigError(f"--kind {name} is unknown: write one of {', '.join(known)}{did_you_mean(name, list(known))}")
    return ROWS if "all" in chosen else chosen


def _next(log: EventLog, after: Position) -> list[Event]:
    """Return the events after a position; none while the database is away."""
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
        echo(_line(event))


def _line(event: Event) -> str:
    """Return one line that fits the terminal: time, type, place, author, and the beginning of the text; below it the address."""
    width = shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else PIPE_WIDTH
    at = event.stored_at.astimezone().strftime("%H:%M:%S")
    what = f"{event.type}{'?' if event.undecided else ''} {event.row}"
    if event.row not in ("post", "comment"):
        about = f"{at}  {what:<16}  {_in_line(event.site)}  {_in_line(event.text or '')}" if event.site else None
        return _cut(about or f"{at}  {what:<16}  {_in_line(event.text or '')}", width)
    where = f"{event.site}/{event.forum}" if event.forum else event.site
    head = f"{at}  {what:<16}  {_in_line(where)}  {_in_line(event.author or '-')}"
    title, text = _in_line(event.title or ""), _in_line(event.text or "")
    rest = f"{title}: {text}" if title and text else title or text
    first = _cut(f"{_cut(head, max(_NARROWEST, width // 2))}  {rest}", width)
    return f"{first}\n  {_cut(_in_line(event.url), width - 2)}" if event.url else first


def _in_line(text: str) -> str:
    """Return the text without line breaks, and without characters that act on a terminal."""
    return in_one_line(" ".join(text.split()))


def _cut(text: str, width: int) -> str:
    """Return the beginning that fits into `width` columns; a Chinese character takes two."""
    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"
