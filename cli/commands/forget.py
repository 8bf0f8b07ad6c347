"""`trawl forget`: let the next scans read threads again, for example after the database was restored or replaced."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from cli.access.names import OF_SITE, check_site, either
from cli.access.redis import NOTHING, redis_client, running_url
from cli.views.output import print_json, say
from forums.spiders.scan_marks import forget_marks
from forums.state.database_identity import DatabaseClaim
from forums.state.forum_states import FORUM_DETAIL, FORUM_LIST
from forums.state.thread_records import forget as forget_threads
from redis_components.admin.crawl_records import keys_in
from redis_components.errors import ConfigError


def forget(
    site: Annotated[str | None, typer.Argument(metavar="SITE", help="A site.", show_default=False)] = None,
    of_site: Annotated[str | None, typer.Option("--site", metavar="SITE", help=OF_SITE, show_default=False)] = None,
    threads: Annotated[
        list[str] | None, typer.Option("--thread", "-t", metavar="ID", help="Only this thread of it; may be repeated.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All sites.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> int:
    """Forget which threads are stored, so that the next scans read them again. The database is not changed.

    Redis records what the database holds of each thread. After the database was replaced, or restored from a backup, these
    records are wrong: they name posts that are no longer there. Then each thread that a list shows is read again, which costs
    requests: for a whole site, or --all, the command asks first, and without a terminal needs --yes.

    **Examples:**

        trawl forget example
        trawl forget example --thread 4711 --thread 4712
        trawl forget --all --yes
    """
    site = either(site, of_site)
    if everything == (site is not None) or (threads and site is None):
        raise typer.BadParameter("name a site, or use --all")

    url = running_url()
    if url is None:
        print_json({"running": False}) if as_json else say(NOTHING)
        return 0
    with redis_client(url) as client:
        if site is not None:
            check_site(site, client=client)
        if not threads and not yes:
            _ask(client.hlen(keys_in(client, FORUM_DETAIL).threads()), site)
        count = forget_threads(client, keys_in(client, FORUM_DETAIL), site, threads)
        if not threads:
            forget_marks(client, keys_in(client, FORUM_LIST), site)
        if everything:
            DatabaseClaim(client).forget()
    if as_json:
        print_json({"forgotten": count})
    else:
        say(f"{count} threads forgotten; the next scans read those that they list again")
    return 0


def _ask(known: object, site: str | None) -> None:
    """Say what follows, and go on after a yes. Raises ConfigError where nobody can be asked, Abort after a no."""
    whose = f"every thread of {site}" if site is not None else "every thread of every site"
    said = (
        f"the next scans will read {whose} again that they list ({known} threads are known in all); the database is not changed"
    )
    if not sys.stdin.isatty():
        raise ConfigError(f"{said}: add --yes")
    typer.confirm(f"{said}. Go on?", abort=True, err=True)
