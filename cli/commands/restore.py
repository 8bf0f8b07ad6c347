"""`trawl restore`: a backup takes the place of what is there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.views.output import say


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `trawl backup` has written.")],
    force: Annotated[bool, typer.Option("--force", help="Replace what is there, also of a fleet that runs.")] = False,
    unsigned: Annotated[
        bool, typer.Option("--unsigned", help="Also a backup without the fleet's signature, which can run SQL of its writer.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> int:
    """Put a backup back: queues and operator's state into Redis, and the database.

    Where messages are signed, the backup has to be signed with one of the fleet's keys. The file is checked as a whole first, and
    all of it is read before anything is replaced. A fleet that runs, queues that hold something and a database with posts are
    replaced only with --force. Pages that were in flight are fetched again.

    **Examples:**

        trawl restore /var/backups/trawl-fleet-20260102T030405Z.backup
        trawl restore monday.backup --force
    """
    from cli.access.backups import put_back
    from cli.access.redis import redis_client
    from cli.views.output import print_json
    from cli.views.progress import working
    from forums.storage import Database
    from redis_components.backup.snapshot import BackupError
    from workers.fleet.sizes import default_fleet

    try:
        with redis_client() as client, working("checking, then putting back", shown=not as_json):
            done = put_back(client, default_fleet(), Database.from_url(), file, force=force, unsigned=unsigned)
    except OSError as error:
        raise BackupError(f"{file}: {error.strerror or error}") from error
    if as_json:
        print_json({name: done[name] for name in ("made_at", "namespace", "trawl", "keys", "database")})
    else:
        database = " and the database" if done["database"] else ", for the backup has no database,"
        say(f"restored {done['keys']:,} keys{database} as of {done['made_at']}")
    return 0
