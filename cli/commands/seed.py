"""`trawl seed`, `forums rescan` and `forums backfill`: queue forums for a scan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import redis
import typer
from rich.text import Text

from cli.access import redis_client
from cli.names import parse_since
from cli.views.options import AsJson, OnlySite
from cli.views.output import complain, counted, echo, print_json, report
from cli.views.tables import console, table_of
from forums import FORUM_LIST
from forums.scheduling import seeding
from forums.scheduling.seeding import Outcome, OutcomeKind, nothing_seeded, sentences
from forums.sites import SiteError, sites_dir
from workers.state.registry import Registry


def seed(
    forums: Annotated[
        list[str] | None, typer.Argument(metavar="FORUM", help="Forums to scan; by default all that are due.")
    ] = None,
    site: OnlySite = None,
    force: Annotated[bool, typer.Option("--force", help="Also forums that are not due yet.")] = False,
    as_json: AsJson = False,
) -> int:
    """Queue forums for a scan, which finds their new and changed threads, and show the outcome for each.

    Named forums are queued now; without names, every forum that is due by its learned rate, within its site's hourly budget.
    A forum that waits already, or is being scanned, is never queued twice. While `trawl up` runs, beat queues due forums.

    **Examples:**

        trawl seed
        trawl seed f1 f2 --site demo
        trawl seed --force
    """
    with redis_client() as client:
        outcomes = seeding.seed(client, forums or None, site, force)
        if not outcomes:
            raise SiteError(
                f"there is no site file in {sites_dir()}: `trawl sites new URL` writes one; TRAWL_SITES_DIR names another folder"
            )
        return print_outcomes(client, outcomes, as_json)


def rescan(
    forums: Annotated[list[str], typer.Argument(metavar="FORUM", help="Forums to scan.")],
    site: OnlySite = None,
    depth: Annotated[int | None, typer.Option(min=1, metavar="PAGES", help="Read this many list pages, new or not.")] = None,
    as_json: AsJson = False,
) -> int:
    """Scan forums now: down to the threads that were seen before, or --depth pages.

    A scan ends at the threads that the last one saw, and the fleet scans deeper when it did not reach them. Use this command for
    threads below: moved threads, or a gap that stayed open (`trawl forums`).

    **Examples:**

        trawl forums rescan f1 --site demo
        trawl forums rescan f1 --depth 100
    """
    with redis_client() as client:
        return print_outcomes(client, seeding.rescan(client, forums, site, depth), as_json)


def backfill(
    site: Annotated[str, typer.Argument(metavar="SITE", help="The site, as its file is named.")],
    forums: Annotated[list[str] | None, typer.Argument(metavar="FORUM", help="Some of its forums; by default all.")] = None,
    since: Annotated[str | None, typer.Option(metavar="WHEN", help="Threads with activity since then: 90d, 2026-01-31.")] = None,
    as_json: AsJson = False,
) -> int:
    """Fetch history: threads from before the forum was watched.

    They have a lower priority than everything new, and use at most `schedule.backfill_share` of the site's requests.
    `trawl forums` shows how many there are.

    **Examples:**

        trawl forums backfill demo --since 90d
        trawl forums backfill demo f1 f2
    """
    from forums.scheduling import rechecking  # loads Scrapy and SQLAlchemy, which the other commands here do without

    moment = parse_since(since) if since else None
    with redis_client() as client:
        return print_outcomes(client, rechecking.backfill(client, site, moment, forums or None), as_json)


def refresh(
    site: Annotated[str, typer.Argument(metavar="SITE", help="The site, as its file is named.")],
    posts: Annotated[list[str], typer.Argument(metavar="POST", help="Ids of posts (threads).")],
    only: Annotated[str | None, typer.Option(metavar="PART", help="post or comments: fetch this part alone.")] = None,
    as_json: AsJson = False,
) -> int:
    """Fetch posts again, with their comments. A post that waits already waits once.

    `--only post` takes one request a post, `--only comments` leaves out the page of the post where it has a separate one.

    **Examples:**

        trawl forums refresh demo p1 p2
        trawl forums refresh demo p1 --only post
    """
    from forums.scheduling import rechecking  # as above

    with redis_client() as client:
        waiting = rechecking.refresh(client, posts, site, only)  # type: ignore[arg-type]  # it is checked there
    report(as_json, {"waiting": waiting}, f"{counted(len(posts), 'post')} queued; {counted(waiting, 'thread')} of all sites wait")
    return 0


def print_outcomes(client: redis.Redis, outcomes: Mapping[str, Outcome], as_json: bool) -> int:
    """Show the outcome for each forum that was to be scanned; return the exit code."""
    refused = {forum: outcome for forum, outcome in outcomes.items() if outcome.kind.is_refused}
    queued = [(forum, outcome) for forum, outcome in outcomes.items() if forum not in refused]
    if as_json:
        print_json(sentences(outcomes))
    elif queued:
        console().print(table_of(queued, {"forum": lambda row: row[0], "outcome": lambda row: _coloured(row[1])}))
        if hint := nothing_seeded(outcomes):
            echo(hint, stderr=True)
        registry = Registry(client)
        now = registry.now()
        if not any(crawler.spider == FORUM_LIST and crawler.alive(now) for crawler in registry.crawlers()):
            echo("No crawler runs yet: what was seeded waits for `trawl up`.", stderr=True)
    for forum, outcome in refused.items():
        complain(f"{forum}: {outcome.sentence}")
    return 1 if refused else 0


def _coloured(outcome: Outcome) -> Text:
    return Text(outcome.sentence, style="green" if outcome.kind is OutcomeKind.SEEDED else "yellow")
