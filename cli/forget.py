"""`trawl forget`: read threads anew, as after the database was restored or replaced."""

from __future__ import annotations

from typing import Annotated

import typer


def forget(
    site: Annotated[str | None, typer.Argument(metavar="SITE", help="A site.", show_default=False)] = None,
    threads: Annotated[
        list[str] | None, typer.Option("--thread", "-t", metavar="ID", help="Only this thread of it; may be repeated.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All sites.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> int:
    """Forget what is stored of threads, so that the next scans read them anew. Nothing in the database changes.

    Redis knows what the database holds of each thread. When the database is another one, or was restored from a backup, Redis
    knows of what is gone.

    **Examples:**

        trawl forget example
        trawl forget example --thread 4711 --thread 4712
        trawl forget --all
    """
    if everything == (site is not None) or (threads and site is None):
        raise typer.BadParameter("name a site, or say --all")
    from redis_components.database_note import DatabaseNote
    from redis_components.keys import CrawlKeys
    from redis_components.thread_records import forget as forget_threads
    from workers.marks import forget_marks

    from .output import print_json
    from .redis_access import redis_client, running_url
    from .status import NOTHING

    url = running_url()
    if url is None:
        print_json({"running": False}) if as_json else print(NOTHING)
        return 0
    with redis_client(url) as client:
        count = forget_threads(client, CrawlKeys.for_spider("forum_detail"), site, threads)
        if not threads:
            forget_marks(client, CrawlKeys.for_spider("forum_list"), site)
        if everything:
            DatabaseNote(client).forget()
    if as_json:
        print_json({"forgotten": count})
    else:
        print(f"{count} threads forgotten; those that the next scans show are read anew")
    return 0
