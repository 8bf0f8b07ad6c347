"""`trawl seed`: give the fleet forums to scan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import redis
import typer
from rich.text import Text

from cli.access.redis import redis_client
from cli.views.output import complain, console, plain_table, print_json, say
from forums.scheduling import seeding
from forums.scheduling.outcomes import Outcome, OutcomeKind, sentences
from forums.sites import SiteError, sites_dir
from forums.state.forum_states import FORUM_LIST
from workers.state.registry import Registry


def seed(
    forums: Annotated[
        list[str] | None, typer.Argument(metavar="FORUM", help="Forums to scan; by default all that are due.", show_default=False)
    ] = None,
    site: Annotated[str | None, typer.Option(help="Only forums of this site (sites/NAME.toml).", show_default=False)] = None,
    force: Annotated[bool, typer.Option("--force", help="Also forums that are not due yet.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcomes as one line of JSON.")] = False,
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


def print_outcomes(client: redis.Redis, outcomes: Mapping[str, Outcome], as_json: bool) -> int:
    """Show what became of forums that somebody wants scanned; returns the exit code."""
    refused = {forum: outcome for forum, outcome in outcomes.items() if outcome.kind.is_refused}
    if as_json:
        print_json(sentences(outcomes))
    elif outcomes.keys() - refused.keys():
        _show({forum: outcome for forum, outcome in outcomes.items() if forum not in refused})
        if not _somebody_scans(client):
            say("No crawler runs yet: what was seeded waits for `trawl up`.", stderr=True)
    for forum, outcome in refused.items():
        complain(f"{forum}: {outcome.sentence}")
    return 1 if refused else 0


def _somebody_scans(client: redis.Redis) -> bool:

    registry = Registry(client)
    now = registry.now()
    return any(crawler.spider == FORUM_LIST and crawler.alive(now) for crawler in registry.crawlers())


def _show(outcomes: Mapping[str, Outcome]) -> None:

    table = plain_table("forum", "outcome")
    for forum, outcome in outcomes.items():
        table.add_row(forum, Text(outcome.sentence, style="green" if outcome.kind is OutcomeKind.SEEDED else "yellow"))
    console().print(table)
