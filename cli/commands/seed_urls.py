"""`trawl seed-urls`: queue URLs for the crawlers of any service."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from cli.access.redis import redis_client
from cli.views.options import AsJson
from cli.views.output import complain, counted, echo, print_json
from cli.views.progress import progress_bar
from redis_components.errors import ConfigError
from workers.fleet import seed_urls as seeding

MOST_SHOWN = 20
"""Refused lines that are listed; the others are counted."""


def seed_urls(
    service: Annotated[str, typer.Argument(metavar="SERVICE", help="The service, as in TRAWL_FLEET.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="A URL or a JSON object a line; - reads standard input.")] = "-",
    unique: Annotated[bool, typer.Option("--unique", help="Skip URLs that the crawl's dupefilter has.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="Queue lines as they are, for a spider with its own format.")] = False,
    skip: Annotated[int, typer.Option(help="Skip so many lines, after an interruption.", min=0, metavar="LINES")] = 0,
    as_json: AsJson = False,
) -> int:
    """Queue URLs, in the order of the lines. A line is a URL, or a JSON object with `url` and other fields of a start task.

    The file is read as it is queued, so it may have millions of lines. Empty lines and those that begin with # are left out;
    a line that is wrong is named, and the others are queued. After an interruption it prints the option to continue with.

    With --unique all are queued, and crawlers leave out URLs in their dupefilter: links that they followed, and URLs that
    were queued with --unique. URLs that were queued without are not in it.

    With --raw a line is what the spider's `make_request_from_data` reads: only empty lines are left out, nothing is checked.

    **Examples:**

        trawl seed-urls books urls.txt
        zcat urls.txt.gz | trawl seed-urls books --unique
    """
    if raw and unique:
        raise ConfigError("--raw and --unique: a task in the spider's own format cannot be marked; give one of them")
    queued, refused, line = 0, dict[int, str](), skip
    bar = progress_bar(f"queued for {service}", "URLs", shown=not as_json)
    with redis_client() as client, _opened(file) as lines, bar as progress:
        kept = _Lines(islice(lines, skip, None), skip, raw=raw)
        seeded = seeding.seed_urls(client, service, kept, unique=unique, raw=raw)
        try:
            for done in seeded:
                queued, line = done.queued, kept.line
                refused |= kept.lines_of(done.refused)
                done.refused.clear()
                progress(queued)
        except BaseException:
            complain(f"{counted(queued, 'URL')} of the lines up to {line:,} are queued; to go on: --skip {line}")
            raise
    if as_json:
        print_json({"queued": queued, "refused": {str(number): reason for number, reason in refused.items()}})
    else:
        left_out = "; its crawlers leave out URLs in their dupefilter" if unique else ""
        echo(f"{counted(queued, 'URL')} queued for {service}{left_out}")
    for number, reason in islice(refused.items(), MOST_SHOWN):
        complain(f"{file}, line {number}: {reason}")
    if len(refused) > MOST_SHOWN:
        complain(f"{len(refused) - MOST_SHOWN:,} more lines are refused: --json lists them all")
    return 1 if refused else 0


class _Lines:
    """Lines that hold a task, with their numbers in the file."""

    def __init__(self, lines: Iterable[bytes], before: int, *, raw: bool) -> None:
        self._raw = raw
        self._lines = enumerate(lines, before + 1)
        self._batch: dict[int, int] = {}
        self._position = 0
        self.line = before

    def __iter__(self) -> Iterator[bytes]:
        for number, text in self._lines:
            self.line = number
            stripped = text.rstrip(b"\r\n") if self._raw else text.strip().removeprefix(b"\xef\xbb\xbf")
            if stripped and (self._raw or not stripped.startswith(b"#")):
                self._position += 1
                self._batch[self._position] = self.line
                yield stripped

    def lines_of(self, refused: dict[int, str]) -> dict[int, str]:
        """Return reasons by line for reasons by position; positions up to now are forgotten."""
        found = {self._batch[position]: reason for position, reason in refused.items()}
        self._batch.clear()
        return found


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdin.buffer
        return
    with ExitStack() as stack:
        try:
            lines = stack.enter_context(Path(file).open("rb"))
        except OSError as error:
            raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None
        yield lines
