"""What the writer assumes of the installed SQLAlchemy, by name: this file fails first when that changes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy import create_mock_engine
from sqlalchemy.dialects import postgresql, sqlite

from forums.storage.schema import dialects
from forums.storage.schema.tables import sites
from tests.contract.assumptions import ASSERTED, DECLARED, asserts

NAMES = ("name", "first_seen_at")
DIALECTS = {
    "sqlite": sqlite.dialect(),
    "postgresql": create_mock_engine("postgresql+psycopg://", lambda *_: None).dialect,
    "mysql": create_mock_engine("mysql+pymysql://", lambda *_: None).dialect,
}
PLACES = {"sqlite": "?", "mysql": "%s"}


@asserts("sqlalchemy", "SQLCompiler.binds", "SQLCompiler.positional", "SQLCompiler.positiontup")
@pytest.mark.parametrize("name", DIALECTS)
def test_a_compiled_statement_says_how_its_parameters_are_given(name: str) -> None:
    compiled = dialects.upsert(sites, name, NAMES).compile(dialect=DIALECTS[name])
    assert set(compiled.binds) == set(NAMES)
    assert compiled.binds["first_seen_at"].type is sites.c.first_seen_at.type
    assert compiled.positional is (name in PLACES)
    if compiled.positional:
        assert list(compiled.positiontup) == list(NAMES)
        assert str(compiled).count(PLACES[name]) == len(NAMES)
    else:
        assert all(f"%({one})s" in str(compiled) for one in NAMES)


@asserts("sqlalchemy", "TypeEngine.bind_processor")
def test_a_type_says_how_a_value_becomes_the_drivers() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    processor = sites.c.first_seen_at.type.bind_processor(DIALECTS["sqlite"])
    assert processor is not None
    assert processor(moment) == "2026-01-02T03:04:05.000000Z"
    assert sites.c.name.type.bind_processor(sqlite.dialect()) is None
    assert sites.c.name.type.bind_processor(postgresql.dialect()) is None


def test_every_declared_assumption_is_asserted_and_no_other() -> None:
    assert ASSERTED["sqlalchemy"] == DECLARED["sqlalchemy"].keys()
