"""`trawl sql`: reads, and is refused whatever else it tries, on each kind of database."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import make_url, text

from cli.main import main
from forums.storage import Database, parse
from forums.storage.read.read_sql import read_sql
from redis_components.errors import ConfigError, TrawlError
from tests.support import warm_start
from tests.support.items import post, wire
from tests.support.postgres_server import USER, PostgresServer

ROOT = Path(__file__).parents[3]
EVERYWHERE = (
    "DELETE FROM posts",
    "DROP TABLE posts",
    "INSERT INTO posts (site, id) VALUES ('x', 'x')",
    "UPDATE posts SET title = 'x' RETURNING id",
    "SELECT 1; DELETE FROM posts",
    "SELECT 1; COMMIT; DELETE FROM posts",
    "COMMIT; DELETE FROM posts",
    "WITH gone AS (DELETE FROM posts RETURNING id) SELECT * FROM gone",
    "WITH one AS (SELECT 1) DELETE FROM posts",
    "CREATE TABLE other AS SELECT * FROM posts",
    "SELECT * INTO other FROM posts",
    "COMMIT",
    "SELECT FROM WHERE",
    "SELECT nope FROM posts",
    "/* SELECT */ DROP TABLE posts",
    "-- SELECT\nDROP TABLE posts",
    "EXPLAIN ANALYZE DELETE FROM posts",
    "",
)
OF = {
    "sqlite": (
        "ATTACH DATABASE 'other.sqlite' AS other",
        "PRAGMA writable_schema = 1",
        "PRAGMA query_only = 0",
        "VACUUM INTO 'other.sqlite'",
        "SELECT load_extension('other.so')",
        "SELECT Load_Extension('other.so', 'x')",
        "SELECT writefile('other', 'x')",
        "SELECT fts3_tokenizer('a', x'4141414141414141')",
        "SELECT length(zeroblob(500000000))",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
    ),
    "postgresql": (
        "COPY (SELECT 1) TO PROGRAM 'touch {file}'",
        "COPY posts FROM PROGRAM 'touch {file}'",
        "COPY posts TO '{file}'",
        "DO $$ BEGIN DELETE FROM posts; END $$",
        "CALL nothing()",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT lo_export(1, '{file}')",
        "SELECT pg_reload_conf()",
        "SELECT set_config('role', 'trawl', false), pg_read_file('/etc/passwd')",
        "SELECT set_config('transaction_read_only', 'off', false), nextval('events_id_seq')",
        "SELECT query_to_xml('DELETE FROM posts', true, true, '')",
        "SELECT query_to_xml('COPY (SELECT 1) TO PROGRAM ''touch {file}''', true, true, '')",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'trawl'",
        "SELECT * FROM posts FOR UPDATE",
        "SELECT set_config('statement_timeout', '0', false), pg_sleep(600)",
    ),
    "mysql": (
        "SELECT 1 INTO OUTFILE '{file}'",
        "SELECT 1 INTO/**/DUMPFILE '{file}'",
        "SELECT 1 /*!50000 INTO OUTFILE '{file}' */",
        "SELECT * FROM posts FOR/**/UPDATE",
        "SELECT * FROM posts LOCK IN SHARE MODE",
        "SELECT LOAD_FILE('/etc/passwd')",
        "SHUTDOWN",
        "SET GLOBAL max_connections = 1",
        "SELECT count(*) FROM posts a, (SELECT sleep(600)) b",
    ),
}


@dataclass
class Stored:
    """A database with two posts, and the same one as `trawl sql` opens it."""

    database: Database
    reading: Database

    def rows(self, statement: str, *, limit: int = 10, seconds: float = 60) -> tuple[list[str], list[tuple[object, ...]]]:
        with read_sql(self.reading, statement, limit=limit, seconds=seconds) as (names, rows):
            return names, list(rows)


@pytest.fixture
def stored(database: Database, request: pytest.FixtureRequest) -> Iterator[Stored]:
    database.write([parse(wire(post(id_, title=title))) for id_, title in (("p1", "Redis"), ("p2", "Cooking; DROP"))])
    if database.engine.dialect.name != "postgresql":
        yield Stored(database, database)
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    url = database.engine.url
    schema = str(url.query["options"]).partition("=")[2]
    server.execute("DROP ROLE IF EXISTS trawl_reader")
    server.execute("CREATE ROLE trawl_reader LOGIN PASSWORD 'reads'")
    server.execute(f"GRANT USAGE ON SCHEMA {schema} TO trawl_reader")
    server.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO trawl_reader")
    reading = Database.from_url(url.set(username="trawl_reader", password="reads").render_as_string(hide_password=False))
    yield Stored(database, reading)
    reading.close()
    server.execute("DROP OWNED BY trawl_reader")


def contents(database: Database) -> list[tuple[object, ...]]:
    with database.engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text("SELECT id, title FROM posts ORDER BY id"))]


def test_one_statement_that_reads_in_each_form(stored: Stored) -> None:
    query = "SELECT id, title FROM posts WHERE title LIKE '%ook%' -- ; DELETE"
    assert stored.rows(query) == (["id", "title"], [("p2", "Cooking; DROP")])
    assert stored.rows("-- which\n /* of */ (SELECT count(*) FROM posts);" if is_postgres(stored) else "SELECT 2")[1] == [(2,)]
    assert stored.rows("WITH found AS (SELECT id FROM posts) SELECT max(id) FROM found")[1] == [("p2",)]
    assert len(stored.rows("SELECT id FROM posts", limit=1)[1]) == 1
    assert contents(stored.database) == [("p1", "Redis"), ("p2", "Cooking; DROP")]
    if stored.database.engine.dialect.name != "mysql":  # MariaDB has no VALUES with brackets alone at the start: VALUES (1)
        assert stored.rows("VALUES (1), (2)")[1] == [(1,), (2,)]


def is_postgres(stored: Stored) -> bool:
    return stored.database.engine.dialect.name == "postgresql"


def test_whatever_would_do_more_is_refused_and_does_nothing(
    stored: Stored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = contents(stored.database)
    before = {path.name for path in tmp_path.iterdir()}
    done, refusals = [], []
    for statement in (*EVERYWHERE, *OF[stored.database.engine.dialect.name]):
        try:
            stored.rows(statement.replace("{file}", str(tmp_path / "made")), seconds=0.3)
        except TrawlError as error:
            refusals.append(str(error))
        else:
            done.append(statement)
    assert done == []
    assert not any("\n" in refusal for refusal in refusals)
    assert contents(stored.database) == rows
    assert {path.name for path in tmp_path.iterdir()} == before


def test_rows_come_while_the_statement_runs_and_its_time_is_bounded(stored: Stored) -> None:
    """Ten million rows in memory would take a gigabyte and longer than this test."""
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) SELECT i FROM n"
    if is_postgres(stored):  # which keeps the rows of a recursion
        endless = "SELECT generate_series(1, 1000000000)"
    elif stored.database.engine.dialect.name != "sqlite":  # MariaDB, which recurs a thousand times at most
        endless = "SELECT seq FROM seq_1_to_1000000000"
    with read_sql(stored.reading, endless, limit=3, seconds=60) as (_, rows):
        assert [row[0] for row in rows] == [1, 2, 3]
    with (
        pytest.raises(ConfigError, match=r"takes longer than 0\.2 s.*--seconds"),
        read_sql(stored.reading, endless, limit=10**9, seconds=0.2) as (_, rows),
    ):
        for _row in rows:
            pass


def test_a_user_with_power_over_the_server_is_refused(postgres_server: PostgresServer) -> None:
    url = postgres_server.url("postgres")
    for user, power in ((USER, "is a superuser"), ("stops", "has the role pg_signal_backend")):
        if user == "stops":
            postgres_server.execute("CREATE ROLE stops LOGIN PASSWORD 's' IN ROLE pg_signal_backend")
            url = make_url(url).set(username=user, password="s").render_as_string(hide_password=False)
        database = Database.from_url(url)
        said = f"user {user} of PostgreSQL {power}.*TRAWL_READING_URL"
        with pytest.raises(ConfigError, match=said), read_sql(database, "SELECT 1", limit=1, seconds=1):
            pass
        database.close()


def test_the_users_of_compose_own_and_read_its_database_and_have_no_power_over_the_server(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    """By the script that the image runs, with other names: the test's superuser is called trawl."""
    script = (ROOT / "deploy/postgres/roles.sql").read_text().replace("trawl", "fleet").replace("ALTER ROLE CURRENT_USER", "--")
    file = tmp_path / "roles.sql"
    file.write_text(script)
    postgres_server.execute("CREATE DATABASE fleet")
    url = make_url(postgres_server.url("fleet"))
    environment = {"PGPASSWORD": str(url.password), "POSTGRES_PASSWORD": "secret", "PATH": "/usr/bin:/bin"}
    command = ["psql", "-v", "ON_ERROR_STOP=1", "-X", "-h", str(url.query["host"]), "-U", USER, "-d", "fleet", "-f", str(file)]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=60)
    owner, reader = (
        Database.from_url(url.set(username=user, password="secret").render_as_string(hide_password=False))
        for user in ("fleet", "fleet_reader")
    )
    with owner:
        assert owner.write([parse(wire(post("p1")))]) == []
    for database in (owner, reader):
        with read_sql(database, "SELECT id FROM posts", limit=5, seconds=60) as (_, rows):
            assert list(rows) == [("p1",)]
    reader.open(upgrade=False)
    with pytest.raises(TrawlError, match="permission denied"):
        reader.write([parse(wire(post("p2")))])
    reader.close()


def test_one_call_of_a_function_ends_with_its_process(tmp_path: Path) -> None:
    """SQLite looks at the time between two steps alone: this one would take days. The command ends after its time."""
    url = f"sqlite:///{tmp_path / 'trawl.sqlite'}"
    Database.from_url(url).open().close()
    statement = "SELECT instr(hex(zeroblob(30000000)), hex(zeroblob(15000000)) || '1')"
    command = [sys.executable, "-m", "cli.main", "sql", statement, "--seconds", "1"]
    environment = {**os.environ, "TRAWL_DATABASE_URL": url, "TRAWL_DATA_DIR": str(tmp_path)}
    done = warm_start.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False, cwd=ROOT)
    assert done.returncode == 2
    assert "takes longer than 1 s" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_command(stored: Stored, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TRAWL_DATABASE_URL", stored.database.engine.url.render_as_string(hide_password=False))
    monkeypatch.setenv("TRAWL_READING_URL", stored.reading.engine.url.render_as_string(hide_password=False))
    assert main(["sql", "SELECT id, author FROM posts ORDER BY id", "--limit", "1"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0] == "id\tauthor"
    assert len(printed.out.splitlines()) == 2
    assert "more than 1 rows" in printed.err
    assert main(["sql", "SELECT nope FROM posts"]) == 2
    assert "docs/reference/database.md" in capsys.readouterr().err
