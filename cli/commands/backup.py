"""`trawl backup`: a backup of a fleet: Redis's keys of one instant, then the database; `trawl db`: its tables.

In this order: an item that moved from Redis into the database in between is in both copies and stored once, by its natural key.
In the other order it would be in neither. A restore has the other order, for the same reason.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import redis
import typer

from cli.access import redis_client, running_client
from cli.views.options import AsJson, command_group
from cli.views.output import echo, report, working
from fleet_operations.backup.archive import (
    FORMAT,
    MANIFEST,
    SIGNATURE,
    SUMS,
    Parts,
    Staging,
    Writer,
    members_again,
    records,
    verified,
)
from fleet_operations.backup.snapshot import BackupError, KeyNames, key_names, read, snapshot
from forums.state.database_state import LATELY_S, DatabaseClaim
from forums.storage import Database
from forums.storage.copying import check, copy_from, copy_name, copy_to, has_posts
from forums.storage.database import VERSION
from forums.storage.engine import place_of
from forums.storage.read.read_sql import existing
from redis_components import __version__
from redis_components.embedded.files import private_file
from redis_components.errors import ConfigError
from redis_components.server.names import fleet_namespace
from redis_components.server.untrusted_values import server_time
from workers.fleet.sizes import default_fleet
from workers.state.nodes import Nodes

app = command_group()

_COPIED = 1 << 20
_KEPT_FREE = 1 << 28
"""Bytes that a restore leaves free."""


def file_for(place: Path) -> Path:
    """Return `place`, or a file in it named by namespace and time where it is a folder."""
    if not place.is_dir():
        return place
    namespace = "".join(sign for sign in fleet_namespace() if sign.isalnum() or sign in "-_") or "fleet"
    return place / f"trawl-{namespace}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.backup"


def make(client: redis.Redis, services: Collection[str], database: Database, target: Path) -> dict[str, Any]:
    """Write a backup, and return what is in it.

    Raises BackupError, StorageError, OSError; there is no file at `target` then, or the former one.
    """
    names = key_names(client, services)
    with tempfile.TemporaryDirectory(prefix=".trawl-backup-", dir=target.parent) as folder, Writer(target) as writer:
        with snapshot(client, names) as copies:
            manifest = {
                "format": FORMAT,
                "trawl": __version__,
                "namespace": fleet_namespace(),
                "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
                "keys": len(copies),
                "services": sorted(services),
            }
            writer.add(MANIFEST, json.dumps(manifest).encode())
            parts = Parts(writer)
            for one, values in read(client, copies):
                parts.add(one.key, one.kind, one.left_ms, values)
            parts.flush()
        copy = Path(folder) / "database"
        there = copy_to(database, copy)
        if there:
            writer.add_file(copy_name(database), copy)
    return {"file": str(target), "bytes": target.stat().st_size, "keys": len(copies), "database": there}


def put_back(
    client: redis.Redis, services: Collection[str], database: Database, source: Path, *, force: bool, unsigned: bool = False
) -> dict[str, Any]:
    """Restore a backup; return its manifest. Everything is read and checked before anything is replaced.

    Raises BackupError, StorageError, OSError: nothing is changed then, but where Redis fails in the last step the database is
    restored already; a repeated command completes it.
    """
    manifest, sums = verified(source, unsigned=unsigned)
    if manifest.get("namespace") != fleet_namespace():
        raise BackupError(f"{source} is of namespace {manifest.get('namespace')!r:.200}: set TRAWL_NAMESPACE to it")
    names = key_names(client, services)
    if not force:
        _refuse_to_overwrite(client, names, database)
    staging = Staging(client)
    with tempfile.TemporaryDirectory(prefix="trawl-restore-") as folder:
        try:
            copy = _load(source, sums, staging, Path(folder) / "database")
            if copy:
                check(Path(folder) / "database", copy, database)
            names = names.with_records(staging.hash_of(names.crawl_records()))  # after a loss this Redis has none of crawls
            if foreign := staging.foreign(names):
                raise BackupError(f"{source}: key {foreign[0]!r:.100} does not belong to this fleet")
            staging.renew()
            if copy:
                copy_from(database, Path(folder) / "database")
                staging.renew()
            staging.swap(names)
        finally:
            staging.discard()
    return manifest | {"keys": staging.keys, "database": bool(copy)}


def _load(source: Path, sums: bytes, staging: Any, copy: Path) -> str:
    """Load keys into Redis under other names, and the database into a file; return the name of that member, "" without one."""
    found = ""
    with members_again(source, sums) as every:
        for name, size, content in every:
            if name.startswith("redis/"):
                staging.load(records(content, size))
            elif name.startswith("database."):
                found = name
                _check_room(copy.parent, size, source)
                private_file(copy)
                with copy.open("wb") as file:
                    while part := content.read(_COPIED):
                        file.write(part)
            elif name == MANIFEST:
                content.read()
            elif name not in (SUMS, SIGNATURE):
                raise BackupError(f"{source} has {name[:100]!r}, which this Trawl cannot read")
    return found


def _check_room(folder: Path, size: int, source: Path) -> None:
    """Raise BackupError where a database of that size would fill the disk, on which Redis may be, too."""
    free = shutil.disk_usage(folder).free
    if size > free - _KEPT_FREE:
        raise BackupError(
            f"{source}: its database has {size:,} bytes, {folder.parent} has {free:,} free: set TMPDIR to a folder with more"
        )


def _refuse_to_overwrite(client: redis.Redis, names: KeyNames, database: Database) -> None:
    now = server_time(client)
    if running := [node.name for node in Nodes(client).all() if node.alive(now)]:
        raise BackupError(f"the fleet is running ({', '.join(running)[:200]}): stop it first, or use --force")
    crawls = {
        key.encode() for crawl in names.crawls for key in (crawl.ready(), crawl.lanes(), crawl.item_stream(), crawl.start_tasks())
    }
    if any(client.exists(key) for key in crawls):
        raise BackupError("Redis has requests, start tasks or items of this fleet: --force replaces them")
    if has_posts(database):
        raise BackupError(f"database {database.name} has posts: --force replaces everything in it")


@app.command()
def create(
    place: Annotated[
        Path, typer.Argument(metavar="FILE|DIR", help="The file to write, or a folder for a file named by the time.")
    ],
    as_json: AsJson = False,
) -> int:
    """Write sizes, pauses, schedule, limits, queues, dead letters and the database into one file, while the fleet works.

    Redis's keys are of one instant: they are copied inside Redis, which needs room for them meanwhile. Raw pages, logs and site
    files are not in it, nor messages of Celery. The file has no secrets of site files, but all crawled data: only
    its owner may read it.

    **Examples:**

        trawl backup create /var/backups/
        trawl backup create monday.backup --json
    """
    target = file_for(place)
    with redis_client() as client, working("reading queues and database", shown=not as_json):
        saved = make(client, default_fleet(), Database.from_url(), target)
    database = " and the database" if saved["database"] else ", but no database, for there is none yet"
    report(as_json, saved, f"{target}: {saved['keys']:,} keys{database}, {saved['bytes']:,} bytes")
    return 0


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `trawl backup create` has written.")],
    force: Annotated[bool, typer.Option("--force", help="Replace present data, also of a fleet that runs.")] = False,
    unsigned: Annotated[
        bool, typer.Option("--unsigned", help="Also a backup without the fleet's signature, which can run SQL of its writer.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Restore a backup: queues and operator's state into Redis, and the database.

    Where messages are signed, the backup has to be signed with one of the fleet's keys. The file is checked as a whole first, and
    all of it is read before anything is replaced. A fleet that runs, queues with entries and a database with posts are
    replaced only with --force. Pages that were in flight are fetched again.

    **Examples:**

        trawl backup restore /var/backups/trawl-fleet-20260102T030405Z.backup
        trawl backup restore monday.backup --force
    """
    with redis_client() as client, working("checking, then restoring", shown=not as_json):
        done = put_back(client, default_fleet(), Database.from_url(), file, force=force, unsigned=unsigned)
    database = " and the database" if done["database"] else ", for the backup has no database,"
    shown = {name: done[name] for name in ("made_at", "namespace", "trawl", "keys", "database")}
    report(as_json, shown, f"restored {done['keys']:,} keys{database} as of {done['made_at']}")
    return 0


db = command_group()


@db.command("upgrade")
def upgrade_tables(as_json: AsJson = False) -> int:
    """Upgrade the tables to the version that this Trawl needs. A Trawl whose tables had version 4 goes on writing them.

    The fleet upgrades the tables when it first stores items. No row is rewritten, so the size of the database hardly matters; a
    running export delays the upgrade.

    **Examples:**

        trawl db upgrade --json
    """
    database = existing()
    before = database.version()
    database.open().close()
    after = database.version()
    outcome = f"had version {before}, and now {after}" if before != after else f"have version {after} already"
    known = {"database": database.name, "version": after, "needed": VERSION, "before": before}
    report(as_json, known, f"database {database.name}: its tables {outcome}")
    return 0


@db.command("move")
def move_database(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Also while a writer stores into the former one.")] = False,
) -> int:
    """Make the database of TRAWL_DATABASE_URL the one that the fleet stores into.

    The first database that a fleet stores into is the fleet's; a writer with another one stores nothing. Nothing is copied. A
    copy or a restored backup has the id of its original and needs no move. Refused while a writer stores into the former one.

    **Examples:**

        TRAWL_DATABASE_URL=postgresql+psycopg://trawl:…@db/trawl trawl db move
    """
    with running_client(code=1) as client, Database.from_url() as database:
        claim, identity, place = DatabaseClaim(client), database.identity() or "", place_of(database.engine.url)
        held, former = claim.holder() or ("", "")
        if held == identity:
            echo(f"the fleet stores into {place} already")
            return 0
        if held and claim.idle_s() < LATELY_S and not yes:
            raise ConfigError(f"a writer has stored into {former} within a minute: stop it first, or add --yes")
        claim.move(identity, place)
    echo(f"the fleet stores into {place} from now on" + (f", no longer into {former}" if former else ""))
    if held:
        echo("threads that only the former one has are read again after: trawl forums forget --all")
    return 0
