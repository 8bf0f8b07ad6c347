"""One's own project with two consumers, from an image FROM Trawl's, in Compose and in a Swarm, with SIGKILL of each part.

    python -m tests.containers.books [--only compose swarm] [--pages 900] [--page FILE]

The commands, files and variables are those of docs/deployment.md, "Your own image": `scrapy startproject`, a Dockerfile of three
lines, `trawl.toml`; three nodes with crawlers. `books` is consumed into a file, `shelf` into SQLite with a key (no image of
PostgreSQL is at hand). A crawler, process 1 of Redis, the consumer's process and process 1 of a node are killed from the host, so
that the engine's restart policy acts. It needs an engine and the image `trawl:latest`, and ends with one line without.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import yaml

from benchmarks.fleet.books import HEAD, IN_CONTAINERS, KILLS, SETTINGS, SPIDER, Row
from benchmarks.support.report import table, write_section

from . import own_engine
from .__main__ import say
from .engine import ROOT, Failed, _run, compose_command, docker, missing, wait

PASSWORD = "of-books"
NAME = "trawl-books"
LIMIT_S = 400.0
DECLARED = """
[services.books]
size = 1
consumer = "jsonl:books.jsonl"

[services.shelf]
spider = "books"
size = 1
consumer = "sqlite:////data/shelf.sqlite"
key = "url"
"""
SITE = (
    "from aiohttp import web; from link_site import application; "
    "web.run_app(application({pages}, 0.5), host='0.0.0.0', port=8000)"
)
ROWS = "import sqlite3; print(*[one for one, in sqlite3.connect('/data/shelf.sqlite').execute('SELECT url FROM shelf')])"


@dataclass(kw_only=True)
class Books:
    """The project's containers under one of both."""

    way: str
    folder: Path
    pages: int
    recovered: dict[str, float] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """What the page exports."""
        given = {
            "TRAWL_REDIS_PASSWORD": PASSWORD,
            "FLOWER_BASIC_AUTH": f"a:{PASSWORD}",
            "TRAWL_CONFIG": str(self.folder / "shop/trawl.toml"),
            "TRAWL_IMAGE": "shop",
            "TRAWL_TAG": "1",
            "TRAWL_DETAIL_REPLICAS": "3",
            "TRAWL_DETAIL_CRAWLERS": "2",
            "TRAWL_LIST_REPLICAS": "0",
            "TRAWL_SITES_DIR": str(self.folder / "sites"),
            "TRAWL_SIGNING_KEY_NAME": f"key_{secrets.token_hex(4)}",
        }
        return {**os.environ, **given}

    def prepare(self) -> None:
        """Make the project, its image, and what is laid over the files: a key, the site, no published ports."""
        self.folder.chmod(0o755)
        project = self.folder / "shop"
        (self.folder / "sites").mkdir()
        subprocess.run([sys.executable, "-m", "scrapy", "startproject", "shop", str(project)], check=True, capture_output=True)
        with (project / "shop/settings.py").open("a") as settings:
            settings.write(SETTINGS.replace('["127.0.0.1"]', '["site"]'))
        (project / "shop/spiders/books.py").write_text(SPIDER)
        (project / "trawl.toml").write_text(DECLARED)
        (project / "Dockerfile").write_text("FROM trawl\nCOPY scrapy.cfg ./\nCOPY shop ./shop\n")
        (project / "signing.key").write_text(secrets.token_hex(32))
        docker("build", "-q", "-t", "shop:1", str(project))
        site: dict[str, Any] = {
            "image": "trawl:latest",
            "command": ["python", "-c", SITE.format(pages=self.pages)],
            "volumes": [f"{ROOT / 'tests/support/link_site.py'}:/app/link_site.py:ro"],
            "healthcheck": {"disable": True},
            "networks": ["default"],
        }
        more: dict[str, Any] = {"services": {"site": site}, "secrets": {"signing_key": {"file": str(project / "signing.key")}}}
        if self.way == "swarm":
            names = yaml.safe_load((ROOT / "deploy/stack.yml").read_text())["services"]
            for name in (*names, "site"):
                more["services"].setdefault(name, {})["deploy"] = {"endpoint_mode": "dnsrr"}
            more["version"] = "3.9"
        (self.folder / "more.yml").write_text(yaml.safe_dump(more))

    @contextmanager
    def up(self) -> Iterator[None]:
        """Start it by the page's command; removed with its volumes at the end."""
        more = str(self.folder / "more.yml")
        if self.way == "compose":
            command = (*compose_command(), "-f", str(ROOT / "docker-compose.yml"), "-f", more, "-p", NAME)
            roles = ("redis", "worker-detail", "worker-control", "beat", "site")
            begin: tuple[str, ...] = (*command, "up", "-d", "--no-build", *roles)
            end: tuple[tuple[str, ...], ...] = ((*command, "down", "-v", "-t", "20"),)
        else:
            docker("swarm", "init", "--advertise-addr", "127.0.0.1")
            docker("node", "update", "--label-add", "trawl.data=true", docker("info", "-f", "{{.Swarm.NodeID}}").strip())
            begin = ("docker", "stack", "deploy", "-c", str(ROOT / "deploy/stack.yml"), "-c", more, NAME)
            end = (("docker", "stack", "rm", NAME), ("docker", "swarm", "leave", "--force"))
        try:
            _run(begin, None, LIMIT_S, self.environment)
            yield
        finally:
            for words in end:
                subprocess.run(words, env=self.environment, capture_output=True, check=False, timeout=LIMIT_S)

    def container(self, service: str, number: int = 0) -> str:
        """Id of a running container of a service."""
        label = "com.docker.compose.service=" if self.way == "compose" else f"com.docker.swarm.service.name={NAME}_"
        found = docker("ps", "-q", "--filter", f"label={label}{service}").split()
        if len(found) <= number:
            raise Failed(f"{service} does not run")
        return found[number]

    def in_control(self, *words: str) -> str:
        """Run a command where its users would."""
        return docker("exec", self.container("worker-control"), *words, limit_s=120)

    def asked(self, what: Callable[[], str]) -> str:
        """Return the answer, "" while its container is away."""
        try:
            return what()
        except (Failed, subprocess.TimeoutExpired):
            return ""

    def lines(self) -> list[str]:
        text = self.asked(lambda: self.in_control("cat", "/data/books.jsonl"))
        return [json.loads(line)["url"] for line in text.splitlines() if line.endswith("}")]

    def rows(self) -> list[str]:
        return self.asked(lambda: self.in_control("python", "-c", ROWS)).split()

    def hits(self) -> int:
        code = "import json, urllib.request as u; print(sum(json.load(u.urlopen('http://127.0.0.1:8000/hits')).values()))"
        return int(self.asked(lambda: docker("exec", self.container("site"), "python", "-c", code)) or 0)

    def seed(self) -> None:
        wait(
            lambda: "books" in self.asked(lambda: self.in_control("trawl", "services", "list")),
            "the services are declared",
            LIMIT_S,
        )
        for service in ("books", "shelf"):
            self.in_control("sh", "-c", f"echo http://site:8000/1 > /tmp/urls && trawl seed-urls {service} /tmp/urls")

    def process_1(self, service: str) -> int:
        return int(docker("inspect", "-f", "{{.State.Pid}}", self.container(service)))

    def process(self, service: str, *words: str) -> int:
        """Pid of a process in one of the service's containers whose command has these words."""
        for number in range(3):
            inside = psutil.Process(int(docker("inspect", "-f", "{{.State.Pid}}", self.container(service, number))))
            for one in inside.children(recursive=True):
                if all(word in one.cmdline() for word in words):
                    return one.pid
        raise Failed(f"{service} has no process {words}")

    def victim(self, what: str) -> int:
        if what == "consumer":  # it holds a lock with its pid in the container; pids of the host have it as the last one
            inside = int(
                self.in_control("sh", "-c", "cat /data/*/*-consumers-0.lock /data/*-consumers-0.lock 2>/dev/null | head -1")
            )
            of_host = psutil.Process(self.process_1("worker-control")).children(recursive=True)
            return next(one.pid for one in of_host if _inside(one.pid) == inside)
        if what == "crawler":
            return self.process("worker-detail", "workers.crawler")
        return self.process_1({"redis": "redis", "worker": "worker-detail"}[what])

    def kill(self, what: str, share: float) -> None:
        wait(lambda: self.hits() >= 2 * share * self.pages, f"{share:.0%} of the pages were fetched", LIMIT_S)
        victim, before, begun = self.victim(what), len(self.lines()), time.monotonic()
        os.kill(victim, signal.SIGKILL)
        wait(lambda: len(self.lines()) > before or before >= self.pages, f"items come again after the death of {what}", LIMIT_S)
        self.recovered[f"{what}_s"] = round(time.monotonic() - begun, 1)

    def row(self) -> Row:
        whole = {f"http://site:8000/{number}" for number in range(1, self.pages + 1)}
        wait(lambda: whole <= {*self.lines()} and whole <= {*self.rows()}, "all items are at their receivers", LIMIT_S)
        lines, rows = self.lines(), self.rows()
        return Row(
            way=f"{self.way}, in containers",
            nodes=3,
            pages=self.pages,
            lines_missing=len(whole - {*lines}),
            copies=len(lines) - len({*lines}),
            rows_missing=len(whole - {*rows}),
            rows_twice=len(rows) - len({*rows}),
            fetched_twice=self.hits() - 2 * self.pages,
            **self.recovered,
        )


def _inside(pid: int) -> int:
    """Return the pid that a process has in its container."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    return pid


def main() -> int:
    """Parse the arguments and run; exit code 1 if an item is missing."""
    parser = argparse.ArgumentParser(prog="python -m tests.containers.books", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="*", default=["compose", "swarm"], choices=["compose", "swarm"])
    parser.add_argument("--pages", type=int, default=900)
    parser.add_argument("--page", type=Path, help="write it there, as the last section")
    chosen = parser.parse_args()
    rows = []
    with own_engine.running():
        if why := missing():
            say(f"skipped: {why}")
            return 0
        for way in chosen.only:
            with tempfile.TemporaryDirectory(prefix="trawl-books-") as folder:
                books = Books(way=way, folder=Path(folder), pages=chosen.pages)
                books.prepare()
                with books.up():
                    books.seed()
                    for what, share in KILLS.items():
                        books.kill(what, share)
                    rows.append(books.row())
                    say(str(rows[-1]))
    text = table(HEAD, [[*vars(one).values()] for one in rows])
    say(text)
    if chosen.page:
        about = (__doc__ or "").split("\n\n", 2)[2].strip()
        write_section(chosen.page, IN_CONTAINERS, f"`python -m tests.containers.books`. {about}\n\n{text}")
    return int(any(one.lines_missing + one.rows_missing + one.rows_twice for one in rows))


if __name__ == "__main__":
    sys.exit(main())
