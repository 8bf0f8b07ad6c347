"""`trawl query` and `trawl sql`: look into what is stored."""

from __future__ import annotations

from dataclasses import asdict
from itertools import islice
from typing import Annotated, Any

import typer

from cli.access.database import stored_data
from cli.access.names import check_site
from cli.views.output import complain, print_json, say, say_indented
from forums.environment import Storage
from forums.storage.read.read_sql import read_sql
from forums.storage.read.search import search

AsJson = Annotated[bool, typer.Option("--json", help="Print one line of JSON for each row.")]


def query(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Words that a post or comment has, all of them.")] = "",
    site: Annotated[str | None, typer.Option(metavar="NAME", help="Only of this site.", show_default=False)] = None,
    author: Annotated[str | None, typer.Option(metavar="NAME", help="Only by this author.", show_default=False)] = None,
    limit: Annotated[int, typer.Option(metavar="N", help="Most rows.", min=1, max=10_000)] = 20,
    as_json: AsJson = False,
) -> int:
    """Search stored posts and comments, the newest first.

    Words are found anywhere in title and text, so Chinese needs no spaces; ASCII letters match in either case. What was
    removed on its site is left out. The whole database is read: some seconds for a million rows. Exit code 1: nothing was found.

    **Examples:**

        trawl query "redis timeout"
        trawl query 队列 --site demo --json
        trawl query --author alice --limit 1
    """
    with stored_data() as database:
        if site is not None:
            check_site(site, stored=database)
        hits = search(database, text, site=site, author=author, limit=limit)
    for hit in hits:
        if as_json:
            print_json(asdict(hit) | {"created_at": hit.created_at.isoformat() if hit.created_at else None})
            continue
        day = f"{hit.created_at:%Y-%m-%d}" if hit.created_at else "no date"
        say(f"{hit.site}  {hit.kind} {hit.id}  {day}  {hit.author or ''}".rstrip())
        say_indented("  ", hit.title or hit.excerpt)
        say(f"  {hit.url}")
        if hit.title:
            say_indented("  ", hit.excerpt)
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
        stored_data(reading.get_secret_value() if reading else None) as database,
        read_sql(database, statement, limit=limit + 1, seconds=seconds) as (names, rows),
    ):
        if not as_json:
            say("\t".join(names))
        for row in islice(rows, limit):
            if as_json:
                print_json(dict(zip(names, map(_plain, row), strict=True)))
            else:
                say("\t".join(" ".join(str(_plain(value)).split()) for value in row))
        if next(rows, None) is not None:
            complain(f"there are more than {limit:,} rows: --limit N prints more")
    return 0


def _plain(value: Any) -> Any:
    """For JSON and for people: null is empty among tabs."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return value.hex() if isinstance(value, bytes) else str(value)
