"""`trawl export`: what is stored, as JSON lines, CSV or Parquet."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from cli.access.database import stored_data
from cli.access.names import check_site
from cli.access.values import parse_since
from cli.views.output import print_json, say
from cli.views.progress import progress_bar
from forums.storage import export as write_rows
from redis_components.errors import ConfigError, TrawlError


class Table(StrEnum):
    """What can be exported."""

    POSTS = "posts"
    COMMENTS = "comments"
    FORUMS = "forums"
    SCANS = "scans"
    GAPS = "gaps"
    REVISIONS = "revisions"


class Format(StrEnum):
    """How a row is written."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


class Deleted(StrEnum):
    """What becomes of posts and comments that were removed on their site."""

    INCLUDE = "include"
    EXCLUDE = "exclude"
    ONLY = "only"


class ExportError(TrawlError):
    """The export cannot be read or written; the message says where and how to mend it."""


def export(
    table: Annotated[
        Table, typer.Argument(metavar="TABLE", help="The table: posts, comments, forums, scans, gaps or revisions.")
    ] = Table.POSTS,
    site: Annotated[str | None, typer.Option(help="Only rows of this site.", show_default=False)] = None,
    since: Annotated[
        str | None,
        typer.Option(
            help="Only rows fetched, or found to be deleted, since then: 2h, 7d, 2026-01-31 or 2026-01-31T12:00:00Z.",
            show_default=False,
        ),
    ] = None,
    fmt: Annotated[
        Format, typer.Option("--format", "-f", help="One JSON object a line, CSV with a header, or Parquet.")
    ] = Format.JSONL,
    deleted: Annotated[
        Deleted, typer.Option(help="Posts and comments that were deleted on their site (they have a `deleted_at`).")
    ] = Deleted.INCLUDE,
    quote_formulas: Annotated[
        bool,
        typer.Option(
            "--quote-formulas/--raw-cells",
            help="CSV: put ' before a text that a spreadsheet would compute, and show control characters as escapes (\\x1b).",
        ),
    ] = True,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write to this file; by default to standard output.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> int:
    """Write stored posts, comments, their earlier texts, forums, scans or gaps as JSON lines, CSV or Parquet.

    Rows are streamed from one snapshot, so an export of any size needs little memory and may run during a crawl. The file appears
    when it is complete.
    The database is TRAWL_DATABASE_URL, else `data/trawl.sqlite`. CSV is made safe for spreadsheets: a text that would be computed
    gets a leading `'`, and control characters are escaped; `--raw-cells` writes texts as they are stored.

    **Examples:**

        trawl export | head -3
        trawl export comments --since 24h -f csv -o comments.csv
        trawl export posts --site demo -f parquet -o posts.parquet
    """
    moment = parse_since(since) if since else None
    if fmt is Format.PARQUET and output is None and sys.stdout.isatty():
        raise ConfigError("Parquet is binary and cannot be written to a terminal: name a file (-o posts.parquet), or use a pipe")
    with stored_data() as database:
        if site is not None:
            check_site(site, stored=database)
    bar = progress_bar(f"export of {table.value}", "rows", shown=output is not None)  # else the rows may go to the terminal
    with stored_data() as database, _opened(output) as out, bar as tell:
        rows = write_rows(
            database,
            table.value,
            fmt.value,
            out,
            site=site,
            since=moment,
            deleted=deleted.value,
            raw_cells=not quote_formulas,
            progress=tell,
        )
    target = str(output) if output else "standard output"
    if as_json and output:
        print_json({"table": table.value, "rows": rows, "file": target})
    else:  # not into the data
        say(f"{rows:,} {table.value} written to {target}", stderr=True)
    return 0


@contextmanager
def _opened(path: Path | None) -> Iterator[BinaryIO]:
    """Standard output, or a file that gets its name when everything is in it."""
    if path is None:
        yield sys.stdout.buffer
        return
    draft = path.with_name(f"{path.name}.part")
    try:
        with draft.open("wb") as out:
            yield out
        draft.replace(path)
    except OSError as error:
        raise ExportError(f"cannot write {path}: {error.strerror}: name a file in a writable folder, with room") from error
    finally:
        with suppress(OSError):  # there is none when all went well, and none where there is no folder for it
            draft.unlink()
