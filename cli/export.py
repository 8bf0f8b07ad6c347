"""`trawl export`: what is stored, as JSON lines or CSV."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TextIO

import typer

from redis_components.errors import TrawlError


class Table(StrEnum):
    """What can be exported."""

    POSTS = "posts"
    COMMENTS = "comments"
    SCANS = "scans"


class Format(StrEnum):
    """How a row is written."""

    JSONL = "jsonl"
    CSV = "csv"


class ExportError(TrawlError):
    """The export cannot be read or written; the message says where and how to mend it."""


def export(
    table: Annotated[Table, typer.Argument(help="What to export.")] = Table.POSTS,
    site: Annotated[str | None, typer.Option(help="Only rows of this site.", show_default=False)] = None,
    since: Annotated[
        str | None,
        typer.Option(help="Only rows fetched since then: 2h, 7d, 2026-01-31 or 2026-01-31T12:00:00Z.", show_default=False),
    ] = None,
    fmt: Annotated[Format, typer.Option("--format", "-f", help="One JSON object a line, or CSV with a header.")] = Format.JSONL,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="A file; none: standard output.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> int:
    """Write stored posts, comments or scan reports as JSON lines or CSV.

    Rows are streamed, all as of one moment, so that an export of any size needs little memory and may run during a crawl. A file
    appears only when it is complete. The database is TRAWL_DATABASE_URL, else `data/trawl.sqlite`.

    **Examples:**

        trawl export | head -3
        trawl export comments --since 24h -f csv -o comments.csv
    """
    from workers.storage import export as write_rows

    from .output import print_json
    from .stored_data import stored_data
    from .times import parse_since

    moment = parse_since(since) if since else None
    with stored_data() as database, _opened(output) as out:
        rows = write_rows(database, table.value, fmt.value, out, site=site, since=moment)
    target = str(output) if output else "standard output"
    if as_json and output:
        print_json({"table": table.value, "rows": rows, "file": target})
    else:  # not into the data
        print(f"{rows:,} {table.value} written to {target}", file=sys.stderr)
    return 0


@contextmanager
def _opened(path: Path | None) -> Iterator[TextIO]:
    """Standard output, or a file that gets its name when everything is in it."""
    if path is None:
        sys.stdout.reconfigure(encoding="utf-8", newline="")  # type: ignore[union-attr]  # the csv module writes its own line ends
        yield sys.stdout
        return
    draft = path.with_name(f"{path.name}.part")
    try:
        with draft.open("w", encoding="utf-8", newline="") as out:
            yield out
        draft.replace(path)
    except OSError as error:
        raise ExportError(f"cannot write {path}: {error.strerror}: name a file in a folder that can be written") from error
    finally:
        with suppress(OSError):  # there is none when all went well, and none where there is no folder for it
            draft.unlink()
