"""`trawl seed`: give the fleet forums to scan."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import redis


def seed(
    forums: Annotated[
        list[str] | None, typer.Argument(help="Forums to scan; none: all that are due.", show_default=False)
    ] = None,
    site: Annotated[str | None, typer.Option(help="Only forums of this site (sites/NAME.toml).", show_default=False)] = None,
    force: Annotated[bool, typer.Option("--force", help="Also forums that are not due yet.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcomes as one line of JSON.")] = False,
) -> int:
    """Queue forums for a scan, which finds their new and changed threads, and say what became of each and why.

    What you name is scanned now; without names, every forum that is due by its learned rate, within its site's requests an hour.
    A forum that waits already, or is being scanned, is never queued twice. While `trawl up` runs, beat seeds by itself.

    **Examples:**

        trawl seed
        trawl seed f1 f2 --site demo
        trawl seed --force
    """
    from workers import seeding
    from workers.sites import SiteError, sites_dir

    from .redis_access import redis_client

    with redis_client() as client:
        outcomes = seeding.seed(client, forums or None, site, force)
        if not outcomes:
            raise SiteError(f"there is no site file in {sites_dir()}: copy sites/demo.toml there, or set TRAWL_SITES_DIR")
        return tell(client, outcomes, as_json)


def tell(client: redis.Redis, outcomes: Mapping[str, str], as_json: bool) -> int:
    """Show what became of forums that somebody wants scanned; returns the exit code."""
    from workers.seeding import is_refused

    from .output import print_json

    refused = {forum: said for forum, said in outcomes.items() if is_refused(forum, said)}
    if as_json:
        print_json(outcomes)
    elif outcomes.keys() - refused.keys():
        _show({forum: said for forum, said in outcomes.items() if forum not in refused})
        if not _somebody_scans(client):
            print("No crawler runs yet: what was seeded waits for `trawl up`.", file=sys.stderr)
    for forum, said in refused.items():
        print(f"trawl: {forum}: {said}", file=sys.stderr)
    return 1 if refused else 0


def _somebody_scans(client: redis.Redis) -> bool:
    from redis_components.registry import Registry

    registry = Registry(client)
    now = registry.now()
    return any(crawler.spider == "forum_list" and crawler.alive(now) for crawler in registry.crawlers())


def _show(outcomes: Mapping[str, str]) -> None:
    from rich.text import Text

    from .output import console, plain_table

    table = plain_table("forum", "outcome")
    for forum, said in outcomes.items():
        table.add_row(forum, Text(said, style="green" if said == "seeded" else "yellow"))
    console().print(table)
