"""my little forum: PHP, MariaDB. Its front page shows each thread as a tree of titles, and each message has its own page; the
page of a whole thread is linked. What is deleted redirects to the front page. A copy of the public repository
`ilosuna/mylittleforum`, put into the cache's folder `mylittleforum` by hand.
"""

from __future__ import annotations

import random
import re
import shutil
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pymysql
import pytest

from tests.real_forums.environment import bare_environment, cache, free_port, run
from tests.real_forums.software import Software
from tests.support.processes import wait_until

_NAMES = ("Ida Berg", "Bob", "carla", "Dov K.")
_WORDS = ("pump", "filter", "soil", "hum", "aerial", "socket", "roof", "water", "garden", "tile", "brick", "lamp", "wire", "pear")
_SERVER = ("--skip-networking", "--innodb-flush-log-at-trx-commit=0", "--sql-mode=")
_VALUES = {"host": "localhost", "user": "root", "password": "", "database": "forum"}


class MyLittleForum(Software):
    """One board. The site file is what `trawl sites new` writes."""

    name: ClassVar[str] = "mylittleforum"
    profile: ClassVar[str] = "generic"
    given: ClassVar[str | None] = "/"

    def install(self) -> None:
        programs = ("php", "mariadbd", "mariadb-install-db")
        if not all(map(shutil.which, programs)):
            pytest.skip("PHP or MariaDB is not installed: apt-get install php-cli php-mysql mariadb-server")
        self._source = cache("mylittleforum")
        if not (self._source / "index.php").exists():
            pytest.skip(f"{self._source} has no index.php: put a copy of ilosuna/mylittleforum there")
        self._chance = random.Random(15)
        self._at = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)

    def start(self) -> None:
        data, root, socket = self.folder / "database", self.folder / "www", self.folder / "db.sock"
        run(["mariadb-install-db", f"--datadir={data}", "--skip-test-db", "--auth-root-authentication-method=normal"])
        options = [f"--datadir={data}", f"--socket={socket}", "--default-time-zone=+00:00", *_SERVER]
        self.launch(["mariadbd", "--no-defaults", "--user=root", *options])
        wait_until(socket.exists, self.log, 60)
        run(["mariadb", "--no-defaults", f"--socket={socket}", "-uroot", "-e", "CREATE DATABASE forum CHARACTER SET utf8mb4"])
        self._database = pymysql.connect(unix_socket=str(socket), user="root", database="forum", autocommit=True)
        shutil.copytree(self._source, root)
        index = root / "index.php"
        index.write_text(index.read_text().replace("'E_ALL & ~E_NOTICE'", "0"))  # PHP 8 refuses a text
        settings = (root / "config" / "db_settings.php").read_text()
        for name, value in _VALUES.items():
            settings = re.sub(rf"(\$db_settings\['{name}'\] = )'.*?';", rf"\1'{value}';", settings)
        (root / "config" / "db_settings.php").write_text(settings)
        port = free_port()
        self.base_url = f"http://127.0.0.1:{port}"
        for line in (root / "install" / "install.sql").read_text().splitlines():
            if line.strip() and not line.startswith("#"):
                self._rows(line.replace(", KEY user_name (user_name)", ""))  # MariaDB names its UNIQUE key so
        version = (root / "config" / "VERSION").read_text().strip()
        self._rows("INSERT INTO mlf2_temp_infos (name, value) VALUES ('version', %s)", version)
        self._rows("UPDATE mlf2_settings SET value = %s WHERE name = 'forum_address'", f"{self.base_url}/")
        shutil.rmtree(root / "install")
        options = ["-d", "error_reporting=0", "-d", f"mysqli.default_socket={socket}"]
        environment = bare_environment(PHP_CLI_SERVER_WORKERS="4")
        self.launch(["php", *options, "-S", f"127.0.0.1:{port}", "-t", root], environment=environment, cwd=root)
        self.wait_until_it_answers()

    def _forums(self) -> list[str]:
        return ["all"]

    def _populate(self) -> None:
        threads = []
        for _ in range(205):
            messages = [self._write(0, 0)]
            for _ in range(self._chance.choice((0, 0, 1, 2, 5))):
                messages.append(self._write(self._chance.choice(messages), messages[0]))
            threads.append(messages[0])
        for thread in self._chance.sample(threads, 40):
            self._write(thread, thread)

    def _change(self) -> None:
        threads = [row[0] for row in self._rows("SELECT id FROM mlf2_entries WHERE pid = 0 ORDER BY id")]
        for thread in self._chance.sample(threads[10:], 12):
            messages = [row[0] for row in self._rows("SELECT id FROM mlf2_entries WHERE tid = %s", thread)]
            self._write(self._chance.choice(messages), thread)
        for _ in range(3):
            self._write(0, 0)
        leaves = "SELECT id FROM mlf2_entries WHERE pid > 0 AND id NOT IN (SELECT pid FROM mlf2_entries) ORDER BY id LIMIT 3"
        for (message,) in self._rows(leaves):
            self._remove("id", message)
        for thread in threads[50:53]:
            self._remove("tid", thread)
        for thread in threads[60:63]:
            self._rows("DELETE FROM mlf2_entries_cache WHERE cache_id = %s", thread)
            self._rows(
                "UPDATE mlf2_entries SET text = CONCAT(text, ' Mended.'), edited = time, time = time WHERE id = %s", thread
            )

    def _truth(self) -> dict[str, dict[str, dict[str, Any]]]:
        """What the forum's database has now."""
        query = "SELECT id, pid, tid, name, subject, text, DATE_FORMAT(time, '%Y-%m-%d %H:%i') FROM mlf2_entries"
        topics, comments = {}, {}
        for number, parent, thread, name, subject, text, at in self._rows(query):
            told = {"text": text, "author": name, "at": at}
            if parent:
                above = None if parent == thread else str(parent)
                comments[str(number)] = {"topic_id": str(thread), **told, "parent": above}
            else:
                topics[str(number)] = {"forum_id": "all", "title": subject, **told, "replies": None}
        return {"topics": topics, "comments": comments}

    def _rows(self, query: str, *values: Any) -> list[Any]:
        with self._database.cursor() as cursor:
            cursor.execute(query, values or None)
            return list(cursor.fetchall())

    def _write(self, parent: int, thread: int) -> int:
        self._at += timedelta(minutes=self._chance.randint(3, 90))
        title, text = self._words(3, 6), "\n\n".join(self._words(6, 30) for _ in range(self._chance.choice((1, 1, 2))))
        self._rows(
            "INSERT INTO mlf2_entries (pid, tid, time, last_reply, name, subject, text) VALUES (%s, %s, %s, %s, %s, %s, %s)",
            parent, thread, self._at, self._at, self._chance.choice(_NAMES), title, text,
        )  # fmt: skip
        number = int(self._rows("SELECT max(id) FROM mlf2_entries")[0][0])
        for rating in ("akismet", "b8"):  # without one it is hidden
            self._rows(f"INSERT INTO mlf2_{rating}_rating (eid) VALUES (%s)", number)
        if not thread:
            self._rows("UPDATE mlf2_entries SET tid = id, time = time WHERE id = %s", number)
        self._rows("UPDATE mlf2_entries SET last_reply = %s, time = time WHERE tid = %s", self._at, thread or number)
        return number

    def _remove(self, column: str, number: int) -> None:
        self._rows(f"DELETE FROM mlf2_entries WHERE {column} = %s", number)

    def _words(self, least: int, most: int) -> str:
        return " ".join(self._chance.choice(_WORDS) for _ in range(self._chance.randint(least, most))).capitalize()
