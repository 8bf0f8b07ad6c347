"""`trawl db`: check and upgrade the database's tables; move the fleet to another database."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.access.redis import redis_client, report_nothing_runs, running_url
from cli.views.options import AsJson
from cli.views.output import echo, print_json
from forums.state.database_identity import LATELY_S, DatabaseClaim
from forums.storage import Database
from forums.storage.engine import place_of
from forums.storage.read.read_sql import existing
from forums.storage.schema.version import VERSION, mismatch
from redis_components.errors import ConfigError

app = typer.Typer(no_args_is_help=True, help="Check and upgrade the database's tables; move the fleet to another database.")


@app.command()
def check(as_json: AsJson = False) -> int:
    """Show the version of the tables and the version that this Trawl needs. Exit code 1: they differ."""
    database = existing()
    version = database.version()
    problem = f"it has no tables; {_HOW_MADE}" if version is None else mismatch(version)
    if as_json:
        _print_json(database, version, problem)
    else:
        echo(f"database {database.name}: {problem or f'its tables have version {VERSION}, as this Trawl needs'}")
    return 1 if problem else 0


@app.command()
def upgrade(as_json: AsJson = False) -> int:
    """Upgrade the tables to the version that this Trawl needs. Older Trawls refuse them from then on.

    The fleet upgrades the tables when it first stores items. No row is rewritten, so the size of the database hardly matters; a
    running export delays the upgrade.

    **Examples:**

        trawl db check
        trawl db upgrade
    """
    database = existing()
    before = database.version()
    database.open().close()
    after = database.version()
    if as_json:
        _print_json(database, after, None, before)
    else:
        outcome = f"had version {before}, and now {after}" if before != after else f"have version {after} already"
        echo(f"database {database.name}: its tables {outcome}")
    return 0


@app.command()
def move(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Also while a writer stores into the former one.")] = False,
) -> int:
    """Make the database of TRAWL_DATABASE_URL the one that the fleet stores into.

    The first database that a fleet stores into is the fleet's; a writer with another one stores nothing. Nothing is copied. A
    copy or a restored backup has the id of its original and needs no move. Refused while a writer stores into the former one.

    **Examples:**

        TRAWL_DATABASE_URL=postgresql+psycopg://trawl:…@db/trawl trawl db move
    """
    if (url := running_url()) is None:
        report_nothing_runs()
        return 1
    with redis_client(url) as client, Database.from_url() as database:
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


_HOW_MADE = "the fleet makes them when it first stores items (trawl up)"


def _print_json(database: Database, version: int | None, problem: str | None, before: int | None = None) -> None:
    known = {"database": database.name, "version": version, "needed": VERSION, "problem": problem}
    print_json(known if before is None else known | {"before": before})
