"""A real PostgreSQL for tests: private, in a folder of its own, on a unix socket (no TCP), with a password."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg
from sqlalchemy import URL

from tests.support.processes import wait_until

USER = "trawl"


def binaries() -> Path | None:
    """Folder with `initdb` and `postgres`: the newest of Debian's, else those on PATH; None where there are none."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda found: int(found.parts[-3]))
    if debian:
        return debian[-1].parent
    on_path = shutil.which("initdb")
    return Path(on_path).resolve().parent if on_path else None


class PostgresServer:
    """A server that a test may stop and start again; it keeps its data and its URL.

    with PostgresServer(binaries()) as server:
        url = server.new_database()
    """

    def __init__(self, folder_of_binaries: Path) -> None:
        self._bin = folder_of_binaries
        self._folder = Path(tempfile.mkdtemp(prefix="trawl-pg-"))  # short: a socket's path has at most 107 bytes
        self._password = secrets.token_hex(8)
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0

    def start(self) -> None:
        """Start, or start again, and wait until it answers."""
        # fsync off: this data need not outlive the machine. Autovacuum off: nothing here lives long enough.
        options = {"fsync": "off", "autovacuum": "off", "max_connections": "30"}
        settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._bin / "postgres", "-D", self._data, "-k", self._folder, "-h", "", *settings],
                stdout=log,
                stderr=log,
                **self._as_unprivileged(),
            )
        wait_until(self._answers, lambda: f"PostgreSQL answers; its log:\n{self._log.read_text()}", 60)

    def stop(self) -> None:
        """Fast shutdown: open transactions are rolled back, connections are cut."""
        if self._process:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(60)
            self._process = None

    def crash(self) -> None:
        """End at once, as a machine does whose power is gone: nobody is told, nothing is finished."""
        assert self._process
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(60)
        self._process = None

    def new_database(self) -> str:
        """URL of an empty database."""
        self._databases += 1
        name = f"test_{self._databases}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def new_schema(self) -> str:
        """URL of the server's first database with an empty schema in front: much cheaper than a database of its own."""
        self._databases += 1
        name = f"test_{self._databases}"
        self.execute(f"CREATE SCHEMA {name}")
        return self.url("postgres", options=f"-csearch_path={name}")

    def url(self, database: str, *, user: str = USER, password: str | None = None, **query: str) -> str:
        return URL.create(
            "postgresql+psycopg",
            username=user,
            password=password or self._password,
            database=database,
            query={"host": str(self._folder), **query},
        ).render_as_string(hide_password=False)

    def execute(self, statement: str, *, database: str = "postgres") -> None:
        """One statement as the server's owner, outside any transaction."""
        with self._connect(database) as connection:
            connection.execute(statement.encode())

    @contextmanager
    def holding_a_lock(self, table: str, *, database: str) -> Iterator[None]:
        """Inside the block nobody else can read or write this table."""
        connection = self._connect(database)
        try:
            connection.execute(b"BEGIN")
            connection.execute(f"LOCK TABLE {table}".encode())
            yield
        finally:
            connection.close()

    def waiting_for_locks(self, database: str) -> int:
        """How many connections to this database wait for a lock."""
        with self._connect(database) as connection:
            row = connection.execute(
                b"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            ).fetchone()
            return int(row[0]) if row else 0

    def waiting_for(self, event: str) -> int:
        """How many connections wait for this event of pg_stat_activity, such as SyncRep."""
        with self._connect("postgres") as connection:
            row = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event = %s", (event,)).fetchone()
            return int(row[0]) if row else 0

    def _initialise(self) -> None:
        secret = self._folder / "password"
        secret.write_text(self._password)
        if os.geteuid() == 0:
            for path in (self._folder, secret):
                shutil.chown(path, **self._owner())
        where = [f"--pgdata={self._data}", f"--pwfile={secret}"]
        self._make("initdb", *where, f"--username={USER}", "--auth=scram-sha-256", "--encoding=UTF8", "--no-sync")

    def _make(self, program: str, *words: str) -> None:
        made = subprocess.run(
            [self._bin / program, *words],
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
            cwd=self._folder,
            env={**os.environ, "PGPASSWORD": self._password},
            **self._as_unprivileged(),
        )
        if made.returncode:
            raise RuntimeError(f"{program} failed: {made.stderr.strip()}")

    def _answers(self) -> bool:
        if self._process and self._process.poll() is not None:
            raise RuntimeError(f"PostgreSQL ended with exit code {self._process.returncode}")
        with self._connect("postgres"):
            return True

    def _connect(self, database: str) -> psycopg.Connection[Any]:
        return psycopg.connect(
            host=str(self._folder), user=USER, password=self._password, dbname=database, autocommit=True, connect_timeout=5
        )

    @staticmethod
    def _owner() -> dict[str, int]:
        nobody = pwd.getpwnam("nobody")
        return {"user": nobody.pw_uid, "group": nobody.pw_gid}

    def _as_unprivileged(self) -> dict[str, Any]:
        """Arguments for subprocess: PostgreSQL refuses to run as root, so as root it runs as `nobody`."""
        return {**self._owner(), "extra_groups": []} if os.geteuid() == 0 else {}

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    @property
    def _log(self) -> Path:
        return self._folder / "log"

    def __enter__(self) -> Self:
        try:
            self._initialise()
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Stop and remove everything."""
        try:
            self.stop()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class StandbyServer(PostgresServer):
    """A standby that follows a primary's log, and answers reading requests until it is promoted.

    with PostgresServer(binaries()) as primary, StandbyServer(primary) as standby:
        standby.is_waited_for()
        url = standby.url_of_both("postgres")
    """

    def __init__(self, primary: PostgresServer) -> None:
        super().__init__(primary._bin)
        self.primary = primary
        self._password = primary._password

    def is_waited_for(self) -> None:
        """From now on a commit on the primary is acknowledged when it is in the standby's log, too."""
        self.primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.primary.execute("SELECT pg_reload_conf()")

    def promote(self) -> None:
        """Become the primary."""
        self.execute("SELECT pg_promote()")

    def url_of_both(self, database: str) -> str:
        """Whichever of the two accepts writes."""
        hosts = f"{self.primary._folder},{self._folder}"
        return self.url(database, host=hosts, target_session_attrs="read-write")

    def _initialise(self) -> None:
        if os.geteuid() == 0:
            shutil.chown(self._folder, **self._owner())
        source = [f"--host={self.primary._folder}", f"--username={USER}"]
        self._make("pg_basebackup", *source, f"--pgdata={self._data}", "--write-recovery-conf", "--checkpoint=fast", "--no-sync")
