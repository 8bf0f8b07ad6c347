"""`trawl rescan` and `trawl backfill`: look deeper, and fetch history."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.access.redis import redis_client
from cli.access.values import parse_since
from forums.scheduling import rechecking, seeding

from .seed import print_outcomes


def rescan(
    forums: Annotated[list[str], typer.Argument(metavar="FORUM", help="Forums to scan.")],
    site: Annotated[str | None, typer.Option(help="Only forums of this site (sites/NAME.toml).", show_default=False)] = None,
    depth: Annotated[
        int | None, typer.Option(min=1, metavar="PAGES", help="Read this many list pages, new or not.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcomes as one line of JSON.")] = False,
) -> int:
    """Scan forums now: down to the threads that were seen before, or --depth pages.

    A scan ends at the threads that the last one saw, and the fleet scans deeper when it did not reach them. Use this command for
    what lies below: threads that were moved, or a gap that stayed open (`trawl forums`).

    **Examples:**

        trawl rescan f1 --site demo
        trawl rescan f1 --depth 100
    """
    with redis_client() as client:
        return print_outcomes(client, seeding.rescan(client, forums, site, depth), as_json)


def backfill(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="SITE|FORUM", help="The site, and some of its forums; by default all.")
    ] = None,
    site: Annotated[str | None, typer.Option(help="The site, where only forums are named.", show_default=False)] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="WHEN", help="Threads with activity since then: 90d, 2026-01-31.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcomes as one line of JSON.")] = False,
) -> int:
    """Fetch history: threads from before the forum was watched.

    They have a lower priority than everything new, and use at most `schedule.backfill_share` of the site's requests.
    `trawl forums` shows how many there are.

    **Examples:**

        trawl backfill demo --since 90d
        trawl backfill demo f1 f2
        trawl backfill f1 f2 --site demo
    """
    forums = list(names or ())
    if site is None and forums:
        site, slash, forum = forums.pop(0).partition("/")
        forums = [forum, *forums] if slash else forums
    if site is None:
        raise typer.BadParameter("name a site: trawl backfill SITE, or --site SITE")

    moment = parse_since(since) if since else None
    with redis_client() as client:
        return print_outcomes(client, rechecking.backfill(client, site, moment, forums or None), as_json)
