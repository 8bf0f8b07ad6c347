"""The files of Trawl that a start task passes, from `seed_forums.delay` to its rows: `python -m benchmarks.start_task_way`.

Real processes carry one start task to the database: a client, a Celery worker, a crawler of each forum service, the writer; each
notes the functions that it calls, but at imports. The same processes run once more without a start task, the client until it has
read its configuration. A file is on the way if one of its functions is called in the first run alone. The list is written into
docs/reference/start-task-way.md.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from demo.forum.process import ForumProcess
from redis_components.keys import CrawlKeys
from tests.support.redis_server import RedisServer

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "start-task-way.md"
BEGIN, END = "<!-- written by `python -m benchmarks.start_task_way` -->\n", "<!-- end -->\n"
PACKAGES = ("redis_components", "workers", "fleet_operations", "tasks", "forum_reader", "forums")
LEGS = ("client", "worker", "forum_list", "forum_detail", "writer")
DEADLINE_S = 60.0
NOTES = f"""
import atexit, json, os, sys, threading

seen = {{}}

def note(frame, event, argument):
    if event != "call":
        return
    code = frame.f_code
    if code not in seen and not imports(frame):
        seen[code] = len(seen)
    if code.co_name == "operands" and code.co_filename.endswith("server/scripts.py"):
        seen.setdefault(frame.f_locals["self"].name, len(seen))

def imports(frame):
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None

def write():
    sys.setprofile(None)
    found = []
    for code in list(seen):
        if isinstance(code, str):
            found.append([f"{{code}}.lua", ""])
        elif code.co_name != "<module>" and code.co_filename.startswith({str(ROOT)!r}):
            found.append([code.co_filename[len({str(ROOT)!r}) + 1:], code.co_qualname])
    with open(os.environ["TRAWL_TEST_WAY"], "w") as file:
        json.dump(found, file)

atexit.register(write)
threading.setprofile(note)
sys.setprofile(note)
"""
Calls = list[tuple[str, str]]
"""File and function of each call, by the first one; of a script `NAME.lua`."""


def way() -> dict[str, list[str]]:
    """Return the files on the way by the process that calls them, in the order of the first call; each file once."""
    with_task, without = _run(seeds=True), _run(seeds=False)
    found: dict[str, list[str]] = {}
    known: set[str] = set()
    for leg in LEGS:
        idle = set(without[leg])
        files = [file for file, name in with_task[leg] if (file, name) not in idle and _is_product(file)]
        found[leg] = [file for file in dict.fromkeys(files) if file not in known]
        known |= {*files}
    return found


def _is_product(file: str) -> bool:
    return file.endswith(".lua") or file.partition("/")[0] in PACKAGES or file == "celeryconfig.py"


def _run(*, seeds: bool) -> dict[str, Calls]:
    with tempfile.TemporaryDirectory(prefix="trawl-way-") as name, RedisServer() as server:
        folder, client = Path(name), server.client()
        (folder / "sitecustomize.py").write_text(NOTES)
        with ForumProcess(seed=3, forums=1, threads=2, comments=2) as forum:
            started = _Processes(folder, server.url, forum.url)
            started.run("database", "-c", "from forums.storage import Database; Database.from_url().open().close()")
            with started.worker():
                if seeds:
                    started.run("client", "-c", "from tasks import seed_forums; seed_forums.delay(['f1'], site='demo')")
                    _wait(lambda: bool(client.llen(CrawlKeys.for_spider("forum_list").start_tasks())))
                else:
                    started.run("client", "-c", "import tasks; tasks.app.finalize(); tasks.app.conf.broker_url")
                for spider in ("forum_list", "forum_detail"):
                    started.run(spider, "-m", "scrapy", "crawl", spider, "-s", "MAX_IDLE_TIME_BEFORE_CLOSE=2")
            started.run("writer", "-c", "from forums.tasks import store_items; store_items()")
            if seeds and not _is_empty(client):
                raise RuntimeError("the writer has left items")
        return {leg: [(file, name) for file, name in json.loads((folder / f"{leg}.json").read_text())] for leg in LEGS}


def _is_empty(client: redis.Redis) -> bool:
    return not any(client.llen(CrawlKeys.for_spider(spider).item_stream()) for spider in ("forum_list", "forum_detail"))


def _wait(until: Callable[[], bool], log: str = "") -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not until():
        if time.monotonic() > deadline:
            raise TimeoutError(f"the start task did not come to its next step: {Path(log).read_text() if log else ''}")
        time.sleep(0.05)


class _Processes:
    """Processes of one fleet, each of which notes its calls in a file of its leg."""

    def __init__(self, folder: Path, redis_url: str, site: str) -> None:
        self._folder = folder
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("TRAWL_")},
            "PYTHONPATH": str(folder),
            "SCRAPY_SETTINGS_MODULE": "workers.settings",
            "TRAWL_REDIS_URL": redis_url,
            "TRAWL_DATA_DIR": str(folder / "data"),
            "TRAWL_SITES_DIR": str(ROOT / "demo" / "sites"),
            "TRAWL_DEMO_URL": site,
            "TRAWL_ENV_FILE": "",
        }

    def run(self, leg: str, *arguments: str) -> None:
        environment = self._environment | {"TRAWL_TEST_WAY": str(self._folder / f"{leg}.json")}
        command = [sys.executable, *arguments]
        subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=DEADLINE_S, capture_output=True)

    @contextmanager
    def worker(self) -> Iterator[None]:
        environment = self._environment | {"TRAWL_TEST_WAY": str(self._folder / "worker.json")}
        command = [sys.executable, "-m", "celery", "-A", "tasks", "worker", "-P", "threads", "-Q", "control", "-l", "INFO"]
        with (self._folder / "worker.log").open("wb") as log:
            process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
        try:
            _wait(lambda: b" ready." in (self._folder / "worker.log").read_bytes(), str(self._folder / "worker.log"))
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(DEADLINE_S)


def page(files: dict[str, list[str]], text: str) -> str:
    """Return the page with the list between its two markers written again."""
    before, rest = text.split(BEGIN)
    number = sum(map(len, files.values()))
    lines = [f"{number} files run for one start task and for nothing else, each at the process that calls it first.\n"]
    for leg, names in files.items():
        lines += [f"\n**{leg}** ({len(names)}):\n", *_wrapped(names)]
    return f"{before}{BEGIN}{''.join(lines)}{END}{rest.split(END, 1)[1]}"


def _wrapped(names: list[str]) -> list[str]:
    lines, line = [], ""
    for name in names:
        word = f"`{name}`"
        if line and len(line) + len(word) > 117:
            lines.append(f"{line},\n")
            line = word
        else:
            line = f"{line}, {word}" if line else word
    return [*lines, f"{line}\n"] if line else lines


if __name__ == "__main__":
    found = way()
    if BEGIN in (text := PAGE.read_text("utf-8")):
        PAGE.write_text(page(found, text), "utf-8")
    for leg, names in found.items():
        sys.stdout.write(f"{leg} {len(names)}: {' '.join(names)}\n")
    sys.stdout.write(f"{sum(map(len, found.values()))} files\n")
