"""One fleet, one database: a writer with another one stores nothing."""

from __future__ import annotations

import redis

from forums.state.database_identity import DatabaseClaim
from forums.storage import Database, StorageError
from forums.storage.engine import FILE_OF, place_of


class AnotherDatabase(StorageError):
    """This process has another database than its fleet; the message names the variable and the value that it needs."""


def claim(client: redis.Redis, database: Database) -> None:
    """Claim the database for the fleet. Raises AnotherDatabase; then nothing was made or changed in it."""
    if (theirs := DatabaseClaim(client).take(database.found_identity() or "", place_of(database.engine.url))) is not None:
        raise _another(database, theirs)


def check_claim(client: redis.Redis, database: Database) -> None:
    """Raise AnotherDatabase if the fleet has claimed another one; claims nothing itself."""
    holder = DatabaseClaim(client).holder()
    if holder is not None and database.found_identity() != holder[0]:
        raise _another(database, holder[1])


def _another(database: Database, theirs: str) -> AnotherDatabase:
    which = theirs or "the one that items were stored in before"
    file = "; a file serves one machine: several need a PostgreSQL or MySQL" if FILE_OF in theirs else ""
    return AnotherDatabase(
        f"this fleet stores into {which}, so nothing is stored in {place_of(database.engine.url)}: set TRAWL_DATABASE_URL to"
        f" the fleet's database{file}; or make this one the fleet's, on purpose: trawl db move"
    )
