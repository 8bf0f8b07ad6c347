"""A fleet with a marked secret in every place that takes one; then everything that it has said, written and shown is searched."""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import secrets
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil

from redis_components.embedded.files import free_port
from tests.attacks.two_sites import SITE_FILE
from tests.support.fleet import MARK, ROOT, ToyFleet
from tests.support.postgres_server import PostgresServer, binaries
from tests.support.processes import arguments, marked, wait_until
from tests.support.watched_site import Page, WatchedSite

LOGIN = """
[headers]
Authorization = "Bearer ${MARKED_BEARER}"
X-Api-Key = "${MARKED_API_KEY}"
[cookies]
session = "${MARKED_COOKIE}"
[raw]
keep_days = 1
"""
EVENTS = """
[outputs.shop]
kind = "webhook"
url = "http://127.0.0.1:{port}/hook"
secret = "${{MARKED_HOOK}}"
begin = "oldest"
[outputs.team]
kind = "notify"
url = "${{MARKED_TEAM}}"
alarms = true
"""
TASK = """
from tasks import app

@app.task(name="own.fails")
def fails(url: str) -> None:
    import redis
    redis.Redis.from_url(url, password=None).ping()
"""


@dataclass
class Marks:
    """Each secret, by what it is, and what it looks like when it is written in another way."""

    secrets: dict[str, str] = field(default_factory=dict)

    def new(self, name: str) -> str:
        return self.secrets.setdefault(name, secrets.token_hex(20))

    def found_in(self, data: bytes) -> set[str]:
        """The names of those that stand in `data`, as they are, in a URL, or in base64."""
        return {name for name, secret in self.secrets.items() if any(form in data for form in self._forms(secret))}

    @staticmethod
    def _forms(secret: str) -> Iterator[bytes]:
        raw = secret.encode()
        yield from (raw, quote(secret).encode())
        # Of base64 the same characters stand for it at each of three offsets, but for the first and the last ones.
        yield from (base64.b64encode(b"x" * offset + raw)[offset + 4 : -8] for offset in range(3))


MAY_STAND = {"Redis: trawl:fleet:jobs": {"argument", "argument of a job"}}
"""A job's order lies in Redis, where its crawlers find it (docs/security.md)."""


class Hook:
    """A webhook's receiver that refuses the first batches, so that the fleet has something to complain of."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        bodies = self.bodies

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                bodies.append(str(self.headers).encode() + self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200 if len(bodies) > 1 else 500)
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port

    def told(self) -> Iterator[tuple[str, bytes]]:
        yield from (("webhook", body) for body in self.bodies)

    def __enter__(self) -> Hook:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def get(port: int, path: str, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


class Fleet(ToyFleet):
    """All programs of a fleet, and every secret that they have."""

    def __init__(self, folder: Path, marks: Marks, site: WatchedSite, hook: Hook, database: str) -> None:
        self.marks, self.hook = marks, hook
        (folder / "sites").mkdir()
        text = SITE_FILE.format(base=site.url, top="", more=LOGIN, breaker="enabled = false")
        (folder / "sites/mine.toml").write_text(text)
        (folder / "events.toml").write_text(EVENTS.format(port=hook.port))
        (folder / "keys").write_text(marks.new("signing key") + marks.new("signing key")[:8] + "\n")
        (folder / "marked_tasks.py").write_text(TASK)
        (folder / "services.toml").write_text(
            '[services.toy]\nproject = "tests.support.toy.settings"\nsize = 0\n'
            f'arguments = {{ token = "{marks.new("argument")}" }}\n'
            f'consumer = "postgresql://user:{marks.new("consumer")}@127.0.0.1:1/items"\n'
        )
        self.ports = {name: free_port() for name in ("flower", "exporter", "api")}
        self.flower_login = f"me:{marks.new('Flower')}"
        super().__init__(
            folder,
            "forum_list=1,forum_detail=1",
            SCRAPY_SETTINGS_MODULE="workers.settings",
            TRAWL_SITES_DIR=str(folder / "sites"),
            TRAWL_EVENTS_FILE=str(folder / "events.toml"),
            TRAWL_SERVICES=str(folder / "services.toml"),
            TRAWL_DATABASE_URL=database,
            TRAWL_SIGNING_KEY_FILE=str(folder / "keys"),
            TRAWL_API_READ_TOKEN=marks.new("API token"),
            TRAWL_API_ACT_TOKEN=marks.new("API token for acting"),
            TRAWL_TASK_MODULES="marked_tasks",
            TRAWL_LOG_LEVEL="DEBUG",
            PYTHONPATH=str(folder),
            FLOWER_BASIC_AUTH=self.flower_login,
            MARKED_BEARER=marks.new("bearer"),
            MARKED_API_KEY=marks.new("key of the site"),
            MARKED_COOKIE=marks.new("cookie"),
            MARKED_HOOK=marks.new("webhook"),
            MARKED_TEAM=f"json://user:{marks.new('messages')}@127.0.0.1:1/x",
        )

    def start_all(self) -> None:
        self.marks.secrets["Redis"] = self.redis.password
        self.node("a", "--loglevel=DEBUG")
        self.beat("--loglevel=DEBUG")
        self.program("exporter", "-m", "monitoring.exporter", "--port", str(self.ports["exporter"]))
        self.program("api", "-m", "monitoring.api", "--port", str(self.ports["api"]))
        self.program(
            "flower", *("-m", "celery", "-A", "tasks", "flower"), "--address=127.0.0.1", f"--port={self.ports['flower']}"
        )

    def trawl(self, *words: str, **environment: str) -> bytes:
        """What a command says, with the traceback of an error, also of one that fails."""
        done = subprocess.run(
            [sys.executable, "-m", "cli.main", *words],
            cwd=ROOT,
            env=self.environment | {"TRAWL_DEBUG": "1"} | environment,
            capture_output=True,
            timeout=120,
            check=False,
        )
        return b" ".join(word.encode() for word in words[:2]) + b"\n" + done.stdout + done.stderr

    # what is searched

    def command_lines(self) -> Iterator[tuple[str, bytes]]:
        for process in marked(MARK, str(self.folder)):
            with suppress(psutil.Error):
                yield f"ps: {arguments(process)[:4]}", " ".join(arguments(process)).encode()

    def in_redis(self) -> Iterator[tuple[str, bytes]]:
        client = self.redis.client()
        readers: Mapping[bytes, Any] = {
            b"string": client.get,
            b"list": lambda key: client.lrange(key, 0, -1),
            b"hash": client.hgetall,
            b"set": client.smembers,
            b"zset": lambda key: client.zrange(key, 0, -1),
            b"stream": client.xrange,
        }
        for key in client.scan_iter("*"):
            kind = client.type(key)
            if kind in readers:
                yield f"Redis: {key.decode()}", key + repr(readers[kind](key)).encode()

    def in_files(self) -> Iterator[tuple[str, bytes]]:
        """All but what the test has written, and the private Redis of nobody."""
        given = {"sites", "keys", "services.toml", "events.toml"}
        for path in self.folder.rglob("*"):
            place = path.relative_to(self.folder)
            if path.is_file() and place.parts[0] not in given:
                data = path.read_bytes()
                with suppress(OSError, EOFError):
                    data += gzip.decompress(data)
                yield f"file: {place}", data

    def on_pages(self) -> Iterator[tuple[str, bytes]]:
        login = {"Authorization": "Basic " + base64.b64encode(self.flower_login.encode()).decode()}
        for path in ("/", "/worker/a@test", "/api/workers?refresh=1", "/api/tasks", "/tasks", "/broker"):
            yield f"Flower: {path}", get(self.ports["flower"], path, **login)[1]
        for path in ("/", "/metrics", "/readyz"):
            yield f"exporter: {path}", get(self.ports["exporter"], path)[1]
        token = {"Authorization": f"Bearer {self.marks.secrets['API token']}"}
        _, told = get(self.ports["api"], "/openapi.json", **token)
        for path, how in json.loads(told)["paths"].items():
            if "get" in how:
                filled = path.replace("{service}", "toy").replace("{name}", "toy").replace("{id}", "toy")
                yield f"API: {path}", get(self.ports["api"], filled, **token)[1]

    def in_commands(self) -> Iterator[tuple[str, bytes]]:
        away = {"TRAWL_REDIS_URL": f"redis://:{self.marks.new('Redis elsewhere')}@127.0.0.1:1/0"}
        no_database = {"TRAWL_DATABASE_URL": f"postgresql+psycopg://trawl:{self.marks.new('database elsewhere')}@127.0.0.1:1/x"}
        for words, more in (
            (("status",), {}),
            (("status", "--json"), {}),
            (("status",), away),
            (("config",), {}),
            (("config", "--json"), {}),
            (("doctor",), {}),
            (("doctor",), no_database),
            (("audit", "--json"), {}),
            (("services", "list", "--json"), {}),
            (("services", "show", "toy"), {}),
            (("events", "list"), {}),
            (("events", "list"), no_database),
            (("schedule", "list", "--json"), {}),
            (("jobs", "list", "--json"), {}),
            (("export", "posts"), {}),
            (("export", "posts"), no_database),
            (("logs", "--no-follow", "-n", "1000"), {}),
            (("dead", "messages"), {}),
            (("consume", "toy", "--once"), {}),
        ):
            yield f"trawl {' '.join(words)}", self.trawl(*words, **more)


@contextmanager
def everything(folder: Path, marks: Marks) -> Iterator[Fleet]:
    with ExitStack() as stack:
        site, hook = stack.enter_context(WatchedSite()), stack.enter_context(Hook())
        site.pages["/list/f"] = Page({"threads": [{"id": "t", "title": "t", "url": f"{site.url}/t", "replies": 1}]})
        site.pages["/t"] = Page({"title": "a title", "body": "a text", "replies": 1})
        site.pages["/comments/t"] = Page({"comments": [{"id": "c", "body": "another text"}]})
        database = f"sqlite:///{folder}/trawl.sqlite"
        if found := binaries():
            database = stack.enter_context(PostgresServer(found)).new_database()
            marks.secrets["database"] = database.partition("@")[0].rpartition(":")[2]
        fleet = stack.enter_context(Fleet(folder, marks, site, hook, database))
        fleet.start_all()
        yield fleet


def test_a_secret_is_shown_by_nobody(tmp_path: Path) -> None:
    marks = Marks()
    with everything(tmp_path, marks) as fleet:
        fleet.trawl("seed", "--site", "mine")
        wait_until(lambda: len(fleet.hook.bodies) > 1, lambda: f"the webhook was told twice\n{fleet.said()}", 120)
        fleet.trawl("job", "start", "toy", "-a", f"password={marks.new('argument of a job')}", "-s", "DOWNLOAD_DELAY=9")
        seen: list[bytes] = []

        def job_runs() -> bool:
            seen[:] = [line for _, line in fleet.command_lines() if b"--job-of=toy" in line]
            return bool(seen)

        wait_until(job_runs, lambda: f"a crawler of the job is there\n{fleet.said()}", 120)
        assert not any(marks.found_in(line) for line in seen)
        fleet.ask(f"app.send_task('own.fails', ['redis://:{marks.new('task')}@127.0.0.1:1/0'])")
        wait_until(lambda: "own.fails" in fleet.said(), fleet.said, 60)
        for port in fleet.ports.values():
            wait_until(lambda port=port: answers(port), fleet.said, 60)  # type: ignore[misc]
        looked, leaks = Counter[str](), {}
        for place in (fleet.command_lines, fleet.in_commands, fleet.on_pages, fleet.in_redis, fleet.in_files, fleet.hook.told):
            for where, data in place():
                looked[place.__name__] += bool(data)
                found = marks.found_in(data) - MAY_STAND.get(where, set())
                leaks |= {where: found} if found else {}
        assert not leaks
        assert min(looked.values()) > 1, looked
        assert len(looked) == 6


def answers(port: int) -> bool:
    with suppress(OSError, http.client.HTTPException):
        return get(port, "/")[0] > 0
    return False
