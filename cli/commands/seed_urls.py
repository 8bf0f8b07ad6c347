"""`trawl seed-urls`: queue URLs for the crawlers of any service."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from cli.access import redis_client
from cli.views.options import AsJson
from cli.views.output import Report, complain, counted, report, working
from fleet_operations import seed_urls as seeding
from redis_components.errors import ConfigError
from redis_components.start_tasks.seeding import Pushed
from workers.targets import parse_target

ROOM_S = 0.5
"""Seconds between two attempts to queue what had no room."""
MOST_SHOWN = 20
"""Refused lines that are listed; the others are counted."""


def seed_urls(
    service: Annotated[str, typer.Argument(metavar="SERVICE", help="The service, as in TRAWL_FLEET.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="A URL or a JSON object a line; - reads standard input.")] = "-",
    unique: Annotated[bool, typer.Option("--unique", help="Skip URLs that the crawl's dupefilter has.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="Queue lines as they are, for a spider with its own format.")] = False,
    unless_in: Annotated[
        str,
        typer.Option("--unless-in", metavar="DATABASE", help="Leave out what has a row there, such as sqlite:///books.sqlite."),
    ] = "",
    table: Annotated[str, typer.Option(metavar="NAME", help="Its table; by default the service's name.")] = "",
    key: Annotated[str, typer.Option(metavar="FIELD", help="Its column of the URL, or of another field of a line.")] = "url",
    skip: Annotated[int, typer.Option(help="Skip so many lines, after an interruption.", min=0, metavar="LINES")] = 0,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Refuse what has no room, with exit code 1.")] = False,
    as_json: AsJson = False,
) -> int:
    """Queue URLs, in the order of the lines. A line is a URL, or a JSON object with `url` and other fields of a start task.

    The file is read as it is queued, so it may have millions of lines. Empty lines and those that begin with # are left out;
    a line that is wrong is named, and the others are queued. After an interruption it prints the option to continue with.

    With --unique all are queued, and crawlers leave out URLs in their dupefilter: links that they followed, and URLs that
    were queued with --unique. URLs that were queued without are not in it.

    Where as many start tasks wait as the service's `max_waiting` allows, it waits until crawlers have taken some.

    With --raw a line is what the spider's `make_request_from_data` reads: only empty lines are left out, nothing is checked.

    With --unless-in lines are left out whose row is stored already: --key is the column. It is compared with the line's field of
    that name, also in `meta` or `cb_kwargs`, else with its URL; with --raw with the line.

    **Examples:**

        trawl seed-urls books urls.txt
        trawl seed-urls books urls.txt --unless-in postgresql://host/shop --key url
        zcat urls.txt.gz | trawl seed-urls books --unique
    """
    if raw and unique:
        raise ConfigError("--raw and --unique: a task in the spider's own format cannot be marked; give one of them")
    done, refused = Pushed(), dict[str, str]()
    bar = working(f"queued for {service}", "URLs", shown=not as_json)
    with redis_client() as client, _opened(file) as lines, bar as progress:
        kept = _Lines(islice(lines, skip, None), skip, raw=raw)
        wait = None if no_wait else _waiting(service, progress)
        target = parse_target(unless_in) if unless_in else None
        seeded = seeding.seed_urls(
            client, service, kept, unique=unique, raw=raw, wait=wait, unless_in=target, table=table, key=key
        )
        try:
            for done in seeded:
                refused |= kept.settle(done)
                progress(done.queued)
        except BaseException:
            if done.settled:
                line = kept.settled
                complain(f"{counted(done.queued, 'URL')} of the lines up to {line:,} are queued; to go on: --skip {line}")
            raise
    stored = f"; {done.known:,} are stored already" if unless_in else ""
    left_out = "; its crawlers leave out URLs in their dupefilter" if unique else ""
    outcome = {"queued": done.queued, "known": done.known, "refused": refused, "no_room": done.no_room}
    report(as_json, outcome, f"{counted(done.queued, 'URL')} queued for {service}{stored}{left_out}")
    for number, reason in islice(refused.items(), MOST_SHOWN):
        complain(f"{file}, line {number}: {reason}")
    if len(refused) > MOST_SHOWN:
        complain(f"{len(refused) - MOST_SHOWN:,} more lines are refused: --json lists them all")
    if done.no_room:
        complain(f"{service}: {done.no_room_sentence()}; line {kept.full:,} is the first of them")
    return 1 if refused or done.no_room else 0


def _waiting(service: str, progress: Report) -> Callable[[Pushed], None]:
    """Return what waits a moment until a service has room; the first time with a line."""
    reported = False

    def wait(done: Pushed) -> None:
        nonlocal reported
        if not reported:
            complain(
                f"{service}: {done.waiting:,} start tasks wait, max_waiting = {done.max_waiting:,}: waiting until crawlers "
                f"have taken some (trawl status); --no-wait refuses the rest"
            )
            reported = True
        progress(done.queued, doing=f"waiting for room in {service}, queued")
        time.sleep(ROOM_S)

    return wait


class _Lines:
    """Lines that hold a task, with their numbers in the file."""

    def __init__(self, lines: Iterable[bytes], before: int, *, raw: bool) -> None:
        self._raw = raw
        self._lines = enumerate(lines, before + 1)
        self._batch: dict[int, int] = {}
        self._position = 0
        self._line = self.settled = before
        self.full = 0  # line of the first task without room

    def __iter__(self) -> Iterator[bytes]:
        for number, text in self._lines:
            self._line = number
            stripped = text.rstrip(b"\r\n") if self._raw else text.strip().removeprefix(b"\xef\xbb\xbf")
            if stripped and (self._raw or not stripped.startswith(b"#")):
                self._position += 1
                self._batch[self._position] = number
                yield stripped

    def settle(self, done: Pushed) -> dict[str, str]:
        """Return the new faults by line, and forget the lines that are settled now; `settled` is the last of them."""
        found = {str(self._batch[position]): reason for position, reason in done.refused.items()}
        done.refused.clear()
        self.full = self.full or self._batch.get(done.full_at, 0)
        for position in [one for one in self._batch if one <= done.settled]:
            self.settled = self._batch.pop(position)
        if not self._batch:
            self.settled = self._line
        return found


def _opened(file: str) -> AbstractContextManager[BinaryIO]:
    return nullcontext(sys.stdin.buffer) if file == "-" else Path(file).open("rb")
