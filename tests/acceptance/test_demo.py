"""`make demo` in a short form: a smaller forum, a shorter life; everything else as a newcomer sees it."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import warm_start
from tests.support.fleet import ROOT
from tests.support.processes import none_left, wait_until

MARK = "TRAWL_TEST_DEMO"
SMALL = {
    "TRAWL_DEMO_THREADS": "36",
    "TRAWL_DEMO_COMMENTS": "4",
    "TRAWL_DEMO_LIVE_S": "3",
    "TRAWL_DEMO_KILL_AT": "0.1",
    "TRAWL_DEMO_LATENCY_MS": "20",
    "TRAWL_NODE_CRAWLERS": "2",  # each is a process of the pool
}


class Demo:
    """A run of the demo, as started by `make demo`, with what it printed in a file."""

    def __init__(self, folder: Path, *, stdout: int | None = None, **environment: str) -> None:
        self.data = folder / "data"
        self._log = folder / "demo.log"
        env = {**os.environ, **SMALL, "TRAWL_DATA_DIR": str(self.data), MARK: str(folder), **environment}
        with self._log.open("wb") as file:
            out = file.fileno() if stdout is None else stdout
            command = [sys.executable, "-m", "demo"]
            self.process = warm_start.Popen(
                command, family="cli.main", cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )

    def said(self) -> str:
        return self._log.read_text(errors="replace")

    def find(self, pattern: str, timeout_s: float) -> re.Match[str]:
        """Wait until it has printed something like that."""

        def found() -> re.Match[str] | None:
            assert self.process.poll() is None or re.search(pattern, self.said()), self.said()
            return re.search(pattern, self.said())

        return wait_until(found, lambda: f"{pattern!r} is printed; so far:\n{self.said()}", timeout_s)

    def end(self) -> int:
        """Ctrl-C; returns the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Afterwards no process of the demo may be left, wherever it hangs by then."""
    with none_left((MARK, str(tmp_path)), timeout_s=20.0):
        yield tmp_path


def test_the_demo_stores_everything_in_spite_of_a_killed_crawler_and_leaves_no_process(folder: Path) -> None:
    demo = Demo(folder)
    code = demo.process.wait(250)
    said = demo.said()
    assert code == 0, said
    assert "Traceback" not in said

    # every post and comment, once, as it is in the forum
    row = r"^(posts|comments): ([\d,]+) shown, 100 % stored as they are shown, 0 twice; (\d+) edited, (\d+) deleted$"
    rows = {table: figures for table, *figures in re.findall(row, said, re.MULTILINE)}
    assert rows.keys() == {"posts", "comments"}, said
    assert all(int(shown.replace(",", "")) > 140 for shown, *_ in rows.values())
    assert not re.search(r"^(missing|wrong|unknown|undeleted|buried|spoilt) ", said, re.MULTILINE)

    # edits and deletions were noticed, and it is shown with how many requests the forum was followed
    assert sum(int(n) for _, *changes in rows.values() for n in changes) > 0
    assert re.search(r"^followed +with [\d,]+ requests in \d+ s", said, re.MULTILINE)

    # a crawler was killed and came back
    assert re.search(r"SIGKILL to forum_detail/0 \(pid \d+\) with \d+ requests", said)
    back = re.search(r"forum_detail/0 crawls again \(pid \d+\) after (\d+\.\d) s", said)
    assert back, "the demo itself waits for it, and not for ever"

    # a newcomer learns where to look, and where the data is
    assert re.search(r"Flower http://127\.0\.0\.1:\d+ +user trawl, password \S+", said)
    database = demo.data / "demo" / "trawl.sqlite"
    assert str(database) in said
    count = sqlite3.connect(database).execute("select count(*) from posts where deleted_at is null").fetchone()[0]
    assert f"{count:,}" == rows["posts"][0]


def test_ctrl_c_in_the_middle_stops_everything(folder: Path) -> None:
    demo = Demo(folder)
    demo.find(r"both crawlers run", 60)
    demo.find(r"the forum lives", 60)
    assert demo.end() == 130
    assert "Traceback" not in demo.said()
    assert "Everything is stopped." in demo.said()


def test_ctrl_c_while_it_starts_stops_what_was_started(folder: Path) -> None:
    demo = Demo(folder)
    demo.find(r"four services: started", 60)
    assert demo.end() == 130
    assert "Traceback" not in demo.said()


def test_a_wrong_option_is_one_line_and_exit_code_2(folder: Path) -> None:
    demo = Demo(folder, TRAWL_DEMO_THREADS="many")
    assert demo.process.wait(60) == 2
    assert demo.said() == "demo: TRAWL_DEMO_THREADS='many': must be a whole number: correct it or unset it\n"


def test_without_a_redis_the_demo_says_what_to_do(folder: Path) -> None:
    demo = Demo(folder, TRAWL_REDIS_BIN="/no/such/redis-server")
    assert demo.process.wait(60) == 1
    assert "demo: TRAWL_REDIS_BIN=/no/such/redis-server is not a Redis" in demo.said()
    assert "Traceback" not in demo.said()
