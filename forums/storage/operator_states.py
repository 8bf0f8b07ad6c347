"""Copy of the operators' settings in Redis, one row for each namespace: restored from here if Redis loses them.

The table is not in `tables.py`: it holds no crawled data, needs no migration, and may be dropped at any time.
"""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
from sqlalchemy import Column, MetaData, Table, delete, insert, inspect, select
from sqlalchemy.schema import CreateTable

from .database import Database
from .engine import WRITING
from .schema.times import NAME, TEXT, UtcDateTime

operator_states = Table(
    "operator_state",
    MetaData(),
    Column("namespace", NAME, primary_key=True),
    Column("kept_at", UtcDateTime, nullable=False),
    Column("state", TEXT, nullable=False),
)
State = dict[str, dict[str, str]]


def write(database: Database, namespace: str, state: State) -> None:
    """Replace the row of a namespace. Raises StorageError."""
    text = msgspec.json.encode(state, order="sorted").decode()
    with (
        database.translated(),
        database.engine.connect().execution_options(**WRITING) as connection,
        connection.begin(),
    ):
        connection.execute(CreateTable(operator_states, if_not_exists=True))
        connection.execute(delete(operator_states).where(operator_states.c.namespace == namespace))
        connection.execute(insert(operator_states).values(namespace=namespace, kept_at=datetime.now(UTC), state=text))


def read(database: Database, namespace: str) -> State:
    """Return the last written state; {} if there is none or it is unreadable. Raises StorageError."""
    with database.translated(), database.engine.connect() as connection:
        if not inspect(connection).has_table(operator_states.name):
            return {}
        text = connection.scalar(select(operator_states.c.state).where(operator_states.c.namespace == namespace))
    try:
        return msgspec.json.decode(text or "{}", type=State)
    except msgspec.MsgspecError:
        return {}
