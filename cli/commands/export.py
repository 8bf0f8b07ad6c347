"""`trawl export`, `trawl search` and `trawl sql`: the stored data; `trawl why`: the records of one URL."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path
from threading import Timer
from typing import Annotated, Any, BinaryIO, Literal

import typer

from cli.access import addresses, running_client
from cli.names import check_site, parse_since
from cli.views.options import AsJson, Newest, OnlySite
from cli.views.output import complain, echo, in_plain_json, print_json, report
from cli.views.tables import echo_indented
from forums.environment import Storage
from forums.overview.why import Why
from forums.overview.why import why as look
from forums.storage.read.export import export as write_rows
from forums.storage.read.read_sql import NoData, read_sql, stored_data, too_long
from forums.storage.read.search import Wanted, find
from redis_components.server.printable import in_one_line

Table = Literal["posts", "comments", "forums", "scans", "revisions"]
Format = Literal["jsonl", "csv"]


def export(
    table: Annotated[
        Table, typer.Argument(metavar="TABLE", help="The table: posts, comments, forums, scans or revisions.")
    ] = "posts",
    site: OnlySite = None,
    since: Annotated[
        str | None,
        typer.Option(help="Only rows fetched, or found to be deleted, since then: 2h, 7d, 2026-01-31 or 2026-01-31T12:00:00Z."),
    ] = None,
    fmt: Annotated[Format, typer.Option("--format", "-f", help="One JSON object a line, or CSV with a header.")] = "jsonl",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write to this file; by default to standard output.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Write stored posts, comments, their earlier texts, forums or scans as JSON lines or CSV.

    Rows are streamed from one snapshot, so an export of any size needs little memory and may run during a crawl. The file appears
    when it is complete.
    The database is TRAWL_DATABASE_URL, else `data/trawl.sqlite`. CSV is made safe for spreadsheets: a text that would be computed
    gets a leading `'`, and control characters are escaped; JSON lines hold the texts as they are stored.

    **Examples:**

        trawl export | head -3
        trawl export comments --since 24h -f csv -o comments.csv
    """
    moment = parse_since(since) if since else None
    with stored_data() as database:
        if site is not None:
            check_site(site, stored=database)
        with _opened(output) as out:
            rows = write_rows(database, table, fmt, out, site=site, since=moment)
    target = str(output) if output else "standard output"
    if as_json and output:
        print_json({"table": table, "rows": rows, "file": target})
    else:  # not into the data
        echo(f"{rows:,} {table} written to {target}", stderr=True)
    return 0


@contextmanager
def _opened(path: Path | None) -> Iterator[BinaryIO]:
    """Yield standard output, or a file that gets its name when it is complete."""
    if path is None:
        yield sys.stdout.buffer
        return
    draft = path.with_name(f"{path.name}.part")
    try:
        with draft.open("wb") as out:
            yield out
        draft.replace(path)
    finally:
        with suppress(OSError):  # there is none when all went well, and none where there is no folder for it
            draft.unlink()


def search_stored(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Words that a post or comment has, all of them.")] = "",
    site: OnlySite = None,
    author: Annotated[str | None, typer.Option(metavar="NAME", help="Only by this author.")] = None,
    since: Annotated[str | None, typer.Option(metavar="WHEN", help="Published since then: 2h, 30d, 2026-01-31.")] = None,
    until: Annotated[str | None, typer.Option(metavar="WHEN", help="Published before then.")] = None,
    limit: Newest = 20,
    as_json: AsJson = False,
) -> int:
    """Search stored posts and comments, the last published first; without words all of them.

    A word is found where it begins a word of title or text, in either case, and Chinese anywhere, since it has no spaces.
    `*word` is found anywhere, too, by reading every row, as MySQL and MariaDB always do: some seconds for a million. Removed
    posts and comments are left out. One without a date counts as published when it was first seen. Exit code 1: nothing was
    found.

    **Examples:**

        trawl search "redis timeout"
        trawl search 队列 --site demo --json
        trawl search --author alice --limit 1
        trawl search gpu --since 30d
        trawl search --since 1h
    """
    wanted = Wanted(
        text=text,
        site=site,
        author=author,
        since=parse_since(since) if since else None,
        until=parse_since(until, option="--until") if until else None,
    )
    with stored_data() as database:
        if site is not None:
            check_site(site, stored=database)
        hits = find(database, wanted, limit=limit).hits
    for hit in hits:
        if as_json:
            print_json(hit)
            continue
        day = f"{hit.published_at:%Y-%m-%d}" if hit.created_at else "no date"
        echo(f"{hit.site}  {hit.kind} {hit.id}  {day}  {hit.author or ''}".rstrip())
        echo_indented("  ", hit.title or hit.excerpt)
        echo(f"  {hit.url}")
        if hit.title:
            echo_indented("  ", hit.excerpt)
    if not hits and not as_json:
        complain("nothing stored fits")
    return 0 if hits else 1


def sql(
    statement: Annotated[str, typer.Argument(metavar="SELECT", help="One statement that reads.")],
    limit: Annotated[int, typer.Option(metavar="N", help="Most rows.", min=1, max=1_000_000)] = 1000,
    seconds: Annotated[float, typer.Option(metavar="N", help="Longest time.", min=1, max=86_400)] = 60,
    as_json: AsJson = False,
) -> int:
    """Run one SELECT or VALUES on the stored data. It can read only; tables and columns: docs/reference/database.md.

    Prints a line of column names, then the rows as they come, with tabs between values.

    **Examples:**

        trawl sql "SELECT site, count(*) FROM posts GROUP BY site"
        trawl sql "SELECT title FROM posts ORDER BY created_at DESC" --limit 5 --json
    """
    reading = Storage.read().reading_url
    with (
        _ended_after(seconds),
        stored_data(reading.get_secret_value() if reading else None) as database,
        read_sql(database, statement, limit=limit + 1, seconds=seconds) as (names, rows),
    ):
        if not as_json:
            echo("\t".join(names))
        for row in islice(rows, limit):
            report(
                as_json,
                dict(zip(names, map(_plain, row), strict=True)),
                "\t".join(" ".join(str(_plain(value)).split()) for value in row),
            )
        if next(rows, None) is not None:
            complain(f"there are more than {limit:,} rows: --limit N prints more")
    return 0


_GRACE_S = 2.0


@contextmanager
def _ended_after(seconds: float) -> Iterator[None]:
    """End the process where the statement does not end in time: nothing interrupts one call of a function of SQLite, such as
    instr() of two long texts.
    """

    def end() -> None:
        complain(str(too_long(seconds)))
        sys.stdout.flush()
        os._exit(2)

    timer = Timer(seconds + _GRACE_S, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _plain(value: Any) -> Any:
    """Return the value as JSON and a terminal take it."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return value.hex() if isinstance(value, bytes) else str(value)


def why(
    url: Annotated[str, typer.Argument(metavar="URL", help="The address of a page.")],
    as_json: AsJson = False,
) -> int:
    """Explain why a page is stored, or is not: queued, leased, given up, refused, done, or never seen, and what was read from it.

    It looks in the queues, leases, dead letters and thread records in Redis, in the database and in the site files. A queue has
    no index by URL: of each key the first 200,000 entries are read. Ends with 1 where nothing holds the page.

    **Example:**

        trawl why http://127.0.0.1:8000/thread/7
    """
    url = addresses(url)[0]
    with ExitStack() as stack, running_client(as_json, code=1) as client:
        try:
            database = stack.enter_context(stored_data())
        except NoData:
            database = None
        found = look(client, database, url)
    if as_json:
        print_json(in_plain_json(found) | {"known": found.is_known})
    else:
        _show(found)
    return 0 if found.is_known else 1


def _show(found: Why) -> None:
    where = [f"site {found.site}" if found.site else "no site"]
    where += [f"thread {found.thread}"] if found.thread else []
    where += [f"board {found.board}"] if found.board else []
    echo(in_one_line(f"{found.url} ({', '.join(where)})"))
    for one in found.findings:
        echo(in_one_line(f"  {one.state}: {one.sentence}"))
    for row in found.rows:
        gone = f", deleted {row.deleted_at:%Y-%m-%d %H:%M:%SZ}" if row.deleted_at else ""
        what = f"{row.row} {row.id}, version {row.version}, fetched {row.fetched_at:%Y-%m-%d %H:%M:%SZ}{gone}"
        echo(in_one_line(f"  stored: {what}: {' '.join(row.shown.split())}"))
    for key in found.cut:
        echo(in_one_line(f"  not all of {key} was searched: it has more than 200,000 entries"))
