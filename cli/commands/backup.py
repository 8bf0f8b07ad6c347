"""`trawl backup`: operator's state, frontier and database of one instant, in one file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cli.views.output import complain, say


def backup(
    place: Annotated[
        Path, typer.Argument(metavar="FILE|DIR", help="The file to write, or a folder for a file named by the time.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> int:
    """Write sizes, pauses, schedule, limits, queues, dead letters and the database into one file, while the fleet works.

    Redis's keys are of one instant: they are copied inside Redis, which needs room for them meanwhile. Raw pages, logs and site
    files are not in it, nor messages of Celery. The file has no secrets of site files, but everything that was crawled: only
    its owner may read it.

    **Examples:**

        trawl backup /var/backups/
        trawl backup monday.backup --json
    """
    from cli.access.backups import file_for, make
    from cli.access.redis import redis_client
    from cli.views.output import print_json
    from cli.views.progress import working
    from forums.storage import Database
    from redis_components.backup.snapshot import BackupError
    from workers.fleet.sizes import default_fleet

    target = file_for(place)
    try:
        with redis_client() as client, working("reading queues and database", shown=not as_json):
            saved = make(client, default_fleet(), Database.from_url(), target)
    except OSError as error:
        raise BackupError(f"{target}: {error.strerror or error}") from error
    if as_json:
        print_json(asdict(saved))
    else:
        database = " and the database" if saved.database else ", but no database, for there is none yet"
        say(f"{saved.file}: {saved.keys:,} keys{database}, {saved.bytes:,} bytes")
    for service in saved.elsewhere:
        complain(f"the queue of {service} is in another Redis, and not in this backup")
    return 0
