"""`trawl rescan` and `trawl backfill`: look deeper, and fetch history."""

from __future__ import annotations

from typing import Annotated

import typer

from .seed import tell


def rescan(
    forums: Annotated[list[str], typer.Argument(help="Forums to scan.")],
    site: Annotated[str | None, typer.Option(help="Only forums of this site (sites/NAME.toml).", show_default=False)] = None,
    depth: Annotated[
        int | None, typer.Option(min=1, metavar="PAGES", help="List pages to read, whatever they hold.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcomes as one line of JSON.")] = False,
) -> int:
    """Scan forums now and deep: down to what was seen before, or so many pages.

    A scan ends where it meets what the last one saw, and the fleet goes deeper by itself where it did not. This is for what lies
    below: threads that were moved, or a gap that stayed open (`trawl forums`).

    **Examples:**

        trawl rescan f1 --site demo
        trawl rescan f1 --depth 100
    """
    from workers import seeding

    from .redis_access import redis_client

    with redis_client() as client:
        return tell(client, seeding.rescan(client, forums, site, depth), as_json)


def backfill(
    site: Annotated[str, typer.Argument(help="The site (sites/NAME.toml).")],
    forums: Annotated[list[str] | None, typer.Argument(help="Some of its forums; none: all of them.", show_default=False)] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="WHEN", help="Threads with activity since then: 90d, 2026-01-31.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcomes as one line of JSON.")] = False,
) -> int:
    """Fetch history: threads that were there before anybody watched.

    They wait behind everything new, and take no more than `schedule.backfill_share` of the site's requests. `trawl forums` shows
    how many those are.

    **Examples:**

        trawl backfill demo --since 90d
        trawl backfill demo f1 f2
    """
    from workers import rechecking

    from .redis_access import redis_client
    from .times import parse_since

    moment = parse_since(since) if since else None
    with redis_client() as client:
        return tell(client, rechecking.backfill(client, site, moment, forums or None), as_json)
