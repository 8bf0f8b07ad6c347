"""The three wheels, each in an empty environment, next to a project with its own `tasks.py`, `celeryconfig.py` and Celery app."""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import signal
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis

from tests.support.fleet import ROOT
from tests.support.processes import wait_until
from tests.support.unknown_forums import FORUMS, THREAD_PAGE
from tests.support.watched_site import Page, WatchedSite
from workers.state.registry import CrawlerState, Registry

pytestmark = pytest.mark.timeout(400)

PROJECT = {
    "tasks.py": """
from celery import Celery, shared_task

app = Celery("theirs")
app.config_from_object("celeryconfig")


@shared_task
def add(a, b):
    return a + b
""",
    "celeryconfig.py": "broker_url = 'memory://'\nresult_backend = 'cache+memory://'\ntask_default_queue = 'theirs'\n",
    "flowerconfig.py": "raise RuntimeError('a flowerconfig.py of the current folder was read')\n",
    "celery.py": "raise RuntimeError('a celery.py of the current folder was imported')\n",
    "cli.py": "raise RuntimeError('a cli.py of the current folder was imported')\n",
    "shop_tasks.py": """
from tasks import app


@app.task(name="shop.count")
def count():
    from redis_components.connection import connect

    connect().set("shop:counted", app.main)
""",
    "scrapy.cfg": "[settings]\ndefault = shop.settings\n",
    "shop/__init__.py": "",
    "shop/settings.py": """
SPIDER_MODULES = ["shop.spiders"]
DOWNLOAD_HANDLERS = {"file": "scrapy.core.downloader.handlers.file.FileDownloadHandler"}
SCHEDULER = "redis_components.scheduler.Scheduler"
DUPEFILTER_CLASS = "redis_components.dupefilter.RFPDupeFilter"
ITEM_PIPELINES = {"redis_components.pipelines.RedisPipeline": 300}
""",
    "shop/spiders.py": """
import redis_components
from redis_components.spiders import RedisSpider


class BooksSpider(RedisSpider):
    name = "books"

    def parse(self, response):
        yield {"url": response.url, "size": len(response.body), "by": redis_components.__file__}
""",
}


# What `pip wheel -C apart=true . packaging/frontier packaging/reader` asks of the build backends, in one process, not seven.
BUILD = """
import os, sys, tempfile
from setuptools import build_meta
sys.path.insert(0, "packaging")
import build_backend

root, target = os.getcwd(), sys.argv[1]
for folder, backend in ((".", build_backend), ("packaging/frontier", build_meta), ("packaging/reader", build_meta)):
    os.chdir(os.path.join(root, folder))
    with tempfile.TemporaryDirectory() as metadata:
        name = backend.prepare_metadata_for_build_wheel(metadata, {"apart": "true"})
        backend.build_wheel(target, {"apart": "true"}, os.path.join(metadata, name))
"""


@dataclass(frozen=True, kw_only=True)
class Guest:
    """An environment with some wheels, and a project that somebody has there."""

    folder: Path
    project: Path
    environment: dict[str, str]

    def start(self, program: str, *arguments: str, log: Path, **environment: str) -> subprocess.Popen[bytes]:
        with log.open("wb") as file:
            return subprocess.Popen(
                [str(self.folder / "bin" / program), *arguments],
                cwd=self.project,
                env={**self.environment, **environment},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def run(self, program: str, *arguments: str, code: int = 0, **environment: str) -> str:
        """What it prints on stdout; it has to end with this exit code."""
        done = subprocess.run(
            [str(self.folder / "bin" / program), *arguments],
            cwd=self.project,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By distribution."""
    folder = tmp_path_factory.mktemp("wheels")
    # One at a time: several xdist workers would build in the same tree.
    with (tmp_path_factory.getbasetemp().parent / "wheels.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run([sys.executable, "-c", BUILD, str(folder)], cwd=ROOT, check=True, capture_output=True, timeout=180)
    return {path.name.partition("-")[0]: path for path in folder.glob("*.whl")}


def guest(folder: Path, *wheels: Path) -> Guest:
    """An empty environment with `wheels`; their dependencies are those of this one, without this checkout."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "env")], check=True, timeout=60)
    python = str(folder / "env/bin/python")
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, *map(str, wheels)], check=True, capture_output=True, timeout=120)
    (packages,) = (folder / "env/lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n")  # files `.pth` there are not read
    project = folder / "project"
    for name, text in PROJECT.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRAWL_", "PYTHON"))}
    bin_folder = str(folder / "env/bin")
    return Guest(folder=folder / "env", project=project, environment={**kept, "PATH": f"{bin_folder}{os.pathsep}{kept['PATH']}"})


@pytest.fixture(scope="module")
def scrapy_project(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return guest(tmp_path_factory.mktemp("frontier"), wheels["trawl_frontier"])


@pytest.fixture(scope="module")
def reader(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return guest(tmp_path_factory.mktemp("reader"), wheels["trawl_reader"])


@pytest.fixture(scope="module")
def fleet(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return guest(tmp_path_factory.mktemp("fleet"), *wheels.values())


def names(wheel: Path) -> set[str]:
    """The top-level names that it installs."""
    tops = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    return {name for name in tops if not name.endswith(".dist-info")}


def files(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


def needs(wheel: Path) -> list[str]:
    """Its direct dependencies, without extras."""
    (metadata,) = (name for name in files(wheel) if name.endswith(".dist-info/METADATA"))
    lines = zipfile.ZipFile(wheel).read(metadata).decode().splitlines()
    found = [line.partition(": ")[2] for line in lines if line.startswith("Requires-Dist: ")]
    return [need for need in found if "extra ==" not in need]


def test_each_wheel_has_one_name_and_every_file_of_its_packages(wheels: dict[str, Path]) -> None:
    assert {name: names(wheel) for name, wheel in wheels.items()} == {
        "trawl_frontier": {"redis_components"},
        "trawl_reader": {"forum_reader"},
        "trawl_fleet": {"trawl_fleet"},
    }
    for wheel, below, packages in (
        (wheels["trawl_frontier"], "", ["redis_components"]),
        (wheels["trawl_reader"], "", ["forum_reader"]),
        (wheels["trawl_fleet"], "trawl_fleet/", ["workers", "fleet_operations", "forums", "tasks", "cli", "monitoring", "demo"]),
    ):
        tracked = subprocess.run(["git", "ls-files", *packages], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
        there = {f"{below}{name}" for name in tracked.stdout.split() if (ROOT / name).is_file()}
        assert there - files(wheel) == set()


def test_frontier_and_reader_need_few_packages_and_the_fleet_both_of_its_version(wheels: dict[str, Path]) -> None:
    frontier, reader, fleet = (needs(wheels[f"trawl_{name}"]) for name in ("frontier", "reader", "fleet"))
    assert len(frontier) <= 5
    assert len(reader) <= 10
    wider = {one for one in frontier if one.startswith("scrapy")}
    assert {*frontier, *reader} - wider <= set(fleet), (
        "the same bounds in all, but for Scrapy, of which the frontier takes older ones"
    )
    folders = (".", "packaging/frontier", "packaging/reader")
    (version,) = {tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]["version"] for folder in folders}
    assert {f"trawl-frontier=={version}", f"trawl-reader=={version}"} <= set(fleet)


def test_a_checkout_installs_without_a_release(tmp_path: Path) -> None:
    """`pip install .`: the wheel has frontier and reader in it, with their files, and requires no distribution of Trawl."""
    stage, project = tmp_path / "stage", tomllib.loads((ROOT / "pyproject.toml").read_text())
    sys.path.insert(0, str(ROOT / "packaging"))
    try:
        build_backend = importlib.import_module("build_backend")
    finally:
        sys.path.remove(str(ROOT / "packaging"))
    build_backend.fill(ROOT, stage, apart=False)
    made = tomllib.loads((stage / "pyproject.toml").read_text())
    assert made["project"]["dependencies"] == project["project"]["dependencies"]
    assert made["tool"]["setuptools"]["packages"]["find"]["include"] == ["trawl_fleet*", "redis_components*", "forum_reader*"]
    for name in ("redis_components", "forum_reader"):
        assert made["tool"]["setuptools"]["package-data"][name] == project["tool"]["setuptools"]["package-data"][name]
        assert (stage / name / "__init__.py").exists()


def test_celery_finds_every_task_in_a_checkout_that_is_not_installed() -> None:
    """`celery -A tasks worker` where the dependencies were installed by hand: `-A` takes the folder off the path again."""
    code = """
import sys
sys.meta_path[:] = [one for one in sys.meta_path if "__editable__" not in repr(one)]
from celery.app.utils import find_app
from celery.utils.imports import cwd_in_path
with cwd_in_path():
    app = find_app("tasks")
app.loader.import_default_modules()
assert "trawl.seed_forums" in app.tasks, sorted(app.tasks)
import forums.tasks
print(forums.tasks.__file__)
"""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRAWL_", "PYTHON"))}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=ROOT, env=kept, capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(ROOT / "forums/tasks.py")


def test_a_celery_application_of_others_is_not_touched(fleet: Guest, tmp_path: Path) -> None:
    code = "import celery; print(celery.current_app.conf.task_default_queue, len(celery.current_app.conf.beat_schedule))"
    elsewhere = Guest(folder=fleet.folder, project=tmp_path, environment=fleet.environment)
    assert elsewhere.run("python", "-c", code) == "celery 0\n"
    for name in ("tasks", "cli", "workers", "fleet_operations", "celeryconfig", "forums"):
        assert elsewhere.run("python", "-c", f"import importlib.util as u; print(u.find_spec({name!r}))") == "None\n"
    code = "import tasks; print(tasks.app.main, tasks.app.conf.task_default_queue, tasks.add(2, 3))"
    (fleet.project / "celery.py").rename(fleet.project / "celery.off")  # their own commands would find it
    try:
        assert fleet.run("python", "-c", code) == "theirs theirs 5\n"
        report = fleet.run("python", "-m", "celery", "-A", "tasks", "report")
    finally:
        (fleet.project / "celery.off").rename(fleet.project / "celery.py")
    assert "memory://" in report
    assert "trawl" not in report.lower().replace(str(fleet.folder.parent).lower(), "")
    assert list(tmp_path.iterdir()) == []
    assert not (fleet.project / "data").exists()


def test_the_frontier_alone_crawls_for_a_scrapy_project(
    scrapy_project: Guest, redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    page.write_text("<p>hello</p>")
    redis_client.lpush("books:start_urls", page.as_uri())
    options = ["-s", f"REDIS_URL={redis_url}", "-s", "SCHEDULER_IDLE_BEFORE_CLOSE=1", "-s", "MAX_IDLE_TIME_BEFORE_CLOSE=1"]
    scrapy_project.run("python", "-P", "-m", "scrapy.cmdline", "crawl", "books", *options)
    (item,) = redis_client.lrange("books:items", 0, -1)
    assert json.loads(item)["by"].startswith(str(scrapy_project.folder))


READ_AND_DRAFT = """
import sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("scrapy", "twisted", "redis", "celery"):
            raise ImportError(f"the reader imports {name}")

sys.meta_path.insert(0, Refused())
from urllib.request import urlopen

import forum_reader
from forum_reader import draft_site, read_page
from forum_reader.draft.draft_site import PlainFetch

page = read_page(urlopen(sys.argv[1]).read().decode(), sys.argv[1])
print(forum_reader.__file__)
print(page.kind.value, [(post.author, post.published.isoformat(), post.text) for post in page.posts])
print(draft_site(sys.argv[2], fetch=PlainFetch(delay_s=0).get))
"""


def test_the_reader_alone_reads_a_page_and_drafts_a_site_file(reader: Guest) -> None:
    forum = FORUMS["tables"]()
    thread = next(one for one in forum.threads if 2 < len(one.posts) <= THREAD_PAGE)
    with WatchedSite() as site:
        site.answer = lambda path: Page(found) if (found := forum.page(path)) else Page("nothing", 404)
        page, start = f"{site.url}/show.cgi?thread={thread.id}", f"{site.url}/"
        found = reader.run("python", "-c", READ_AND_DRAFT, page, start).split("\n", 2)
    assert found[0].startswith(str(reader.folder))
    assert found[1] == f"thread {[(post.author, post.at.isoformat(), post.text) for post in thread.posts]}"
    assert tomllib.loads(found[2])["base_url"] == site.url


def test_the_fleet_runs_its_own_application_in_a_folder_that_has_another(
    no_process_left: None, fleet: Guest, redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    log, registry = tmp_path / "up.log", Registry(redis_client)
    page = tmp_path / "page.html"
    page.write_text("<p>hello</p>")
    redis_client.lpush("books:start_urls", page.as_uri())
    environment = {
        "TRAWL_REDIS_URL": redis_url,
        "TRAWL_DATA_DIR": str(tmp_path / "data"),
        "TRAWL_FLEET": "books=1",
        "TRAWL_NODE_CRAWLERS": "2",
        "TRAWL_TASK_MODULES": "shop_tasks",
    }
    ports = ("--port-flower", "0", "--port-exporter", "0")
    up = fleet.start("trawl", "up", *ports, log=log, **environment)
    try:

        def crawls() -> bool:
            assert up.poll() is None, log.read_text()
            return any(record.state is CrawlerState.RUNNING for record in registry.crawlers())

        wait_until(crawls, lambda: f"a crawler runs:\n{log.read_text()}", 60)
        wait_until(lambda: redis_client.exists("books:items"), lambda: f"their spider has read a page:\n{log.read_text()}", 60)
        code = "from tasks import app; app.send_task('shop.count', queue='control')"
        (tmp_path / "send.py").write_text(code)
        command = f"import runpy, trawl_fleet; trawl_fleet.enter(); runpy.run_path({str(tmp_path / 'send.py')!r})"
        fleet.run("python", "-P", "-c", command, **environment)
        wait_until(lambda: redis_client.get("shop:counted") == b"trawl", lambda: f"their task ran:\n{log.read_text()}", 60)
        assert {one.name for one in registry.crawlers()} == {"books/0"}, "no service of Trawl's own"
    finally:
        up.send_signal(signal.SIGINT)
        code_of_end = up.wait(60)
    said = log.read_text()
    assert code_of_end == 0, said
    assert "of the current folder was" not in said
    assert "ended (" not in said
    assert "theirs" not in said
    assert "forum_list" not in said
