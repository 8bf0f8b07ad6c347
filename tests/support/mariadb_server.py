"""A real MariaDB (or MySQL) for tests: private, in a temporary folder, on a unix socket (no TCP), with a password.

It has what a careless administrator may have set: Latin-1 as the character set, and no strict mode.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pymysql
from sqlalchemy import URL

from tests.support.processes import wait_until

USER = "trawl"
MISSING = "no MariaDB or MySQL: neither mariadbd nor mysqld in /usr/sbin or on PATH (apt-get install mariadb-server)"
_OPTIONS = {
    # What a commit wrote survives the process, not the machine.
    "innodb-flush-log-at-trx-commit": "2",
    "innodb-buffer-pool-size": "64M",
    "innodb-log-file-size": "48M",
    "max-connections": "40",
    "character-set-server": "latin1",
    "collation-server": "latin1_swedish_ci",
    "sql-mode": "",
}


def server_program() -> Path | None:
    """`mariadbd`, else `mysqld`; None where there is neither."""
    path = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))
    found = shutil.which("mariadbd", path=path) or shutil.which("mysqld", path=path)
    return Path(found) if found else None


class MariadbServer:
    """A server that a test may stop, kill and start again; it keeps its data and its URL.

    with MariadbServer(server_program()) as server:
        url = server.new_database()
    """

    def __init__(self, program: Path) -> None:
        self._program = program
        self._folder = Path(tempfile.mkdtemp(prefix="trawl-my-"))  # short: a socket's path has at most 107 bytes
        self._password = secrets.token_hex(8)
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0

    def start(self) -> None:
        """Start, or start again, and wait until it answers."""
        settings = [f"--{name}={value}" for name, value in _OPTIONS.items()]
        settings += ["--skip-networking", f"--tmpdir={self._folder}", f"--init-file={self._first}", f"--datadir={self._data}"]
        settings += [f"--socket={self._socket}", f"--pid-file={self._folder}/pid"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, "--no-defaults", *settings, *self._as_unprivileged()], stdout=log, stderr=log
            )
        wait_until(self._answers, lambda: f"MariaDB answers; its log:\n{self._log.read_text()}", 60)

    def stop(self) -> None:
        """Regular shutdown: open transactions are rolled back, connections are cut."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL, in the middle of whatever it does."""
        self._end(signal.SIGKILL)

    def new_database(self) -> str:
        """URL of an empty database."""
        self._databases += 1
        name = f"test_{self._databases}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def url(
        self, database: str, *, user: str = USER, password: str | None = None, driver: str = "mysql+pymysql", **query: str
    ) -> str:
        return URL.create(
            driver,
            username=user,
            password=password or self._password,
            host="localhost",
            database=database,
            query={"unix_socket": str(self._socket), **query},
        ).render_as_string(hide_password=False)

    def execute(self, statement: str, *, database: str | None = None) -> list[tuple[Any, ...]]:
        """One statement as the server's owner; the rows that it returns."""
        with self._connect(database) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    @contextmanager
    def holding_a_lock(self, table: str, *, database: str) -> Iterator[None]:
        """Inside the block nobody else can read or write this table."""
        with self._connect(database) as connection, connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLES {table} WRITE")
            yield

    def waiting_for_locks(self, database: str) -> int:
        """How many connections to this database wait for a lock."""
        return len(
            self.execute(
                "SELECT id FROM information_schema.processlist"
                f" WHERE db = '{database}' AND (state LIKE 'Waiting%lock%' OR state = 'User lock')"
            )
        )

    def _end(self, signal_: signal.Signals) -> None:
        if self._process:
            self._process.send_signal(signal_)
            self._process.wait(60)
            self._process = None
            self._socket.unlink(missing_ok=True)

    def _initialise(self) -> None:
        self._first.write_text(
            f"CREATE USER IF NOT EXISTS '{USER}'@'localhost' IDENTIFIED BY '{self._password}';\n"
            f"GRANT ALL ON *.* TO '{USER}'@'localhost' WITH GRANT OPTION;\n"
        )
        if os.geteuid() == 0:
            shutil.chown(self._folder, "nobody", pwd.getpwnam("nobody").pw_gid)
        if self._program.name == "mariadbd":
            command = ["mariadb-install-db", "--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal"]
        else:
            command = [str(self._program), "--no-defaults", "--initialize-insecure"]
        made = subprocess.run(
            [*command, f"--datadir={self._data}", f"--tmpdir={self._folder}", *self._as_unprivileged()],
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
            cwd=self._folder,
        )
        if made.returncode:
            raise RuntimeError(f"the data folder was not made: {made.stdout.strip()} {made.stderr.strip()}")

    def _answers(self) -> bool:
        if self._process and self._process.poll() is not None:
            raise RuntimeError(f"MariaDB ended with exit code {self._process.returncode}")
        if not self._socket.exists():
            return False
        with socket.socket(socket.AF_UNIX) as probe:  # PyMySQL leaves one that is refused to the collector, which warns
            probe.connect(str(self._socket))
        return bool(self.execute("SELECT 1"))

    def _connect(self, database: str | None) -> pymysql.Connection[Any]:
        return pymysql.connect(
            unix_socket=str(self._socket),
            user=USER,
            password=self._password,
            database=database,
            autocommit=True,
            connect_timeout=5,
        )

    @staticmethod
    def _as_unprivileged() -> list[str]:
        """It refuses to run as root, so as root it runs as `nobody`."""
        return ["--user=nobody"] if os.geteuid() == 0 else []

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    @property
    def _socket(self) -> Path:
        return self._folder / "socket"

    @property
    def _first(self) -> Path:
        """Statements that each start executes."""
        return self._folder / "first.sql"

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
            self.kill()  # its data is removed: nothing need be written
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
