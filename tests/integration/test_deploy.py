"""A project outside the checkout, with libraries that the node does not have, deployed, rolled and rolled back under load."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import redis
import scrapy

from cli.main import main
from fleet_operations.deploy.deploy import is_new, resize, store, use
from fleet_operations.deploy.environments import prepare
from fleet_operations.deploy.folder import keep_folder
from fleet_operations.deploy.project_wheel import BuildFailed, build, settings_module
from redis_components.admin.inspector import snapshot
from redis_components.errors import ConfigError
from redis_components.keys import CrawlKeys
from tests.support.plain_project import PlainFleet, plain_fleet
from tests.support.processes import wait_until
from workers.fleet.sizes import desired_fleet
from workers.process.options import CrawlerOptions
from workers.state.registry import Registry
from workers.state.services import MAX_WAITING, Deployments, ServiceRecord, Services, Version

SPIDER = """
import shelf
from redis_components.spiders import RedisSpider


class BooksSpider(RedisSpider):
    name = "books"

    def parse(self, response):
        yield {"url": response.url, "shelf": shelf.VERSION}
        yield from response.follow_all(css="a")
"""
SETTINGS = """
from tests.support.light_scrapy import *
SPIDER_MODULES = ["shop.spiders"]
SCHEDULER = "redis_components.scheduler.Scheduler"
DUPEFILTER_CLASS = "redis_components.dupefilter.RFPDupeFilter"
STATS_CLASS = "redis_components.stats.RedisStatsCollector"
ITEM_PIPELINES = {"redis_components.pipelines.RedisPipeline": 300}
SCHEDULER_PERSIST = True
CONCURRENT_REQUESTS = 1
DOWNLOAD_DELAY = 0.2
ROBOTSTXT_OBEY = False
"""
PAGES = 400


def shop(folder: Path, shelf: str, *, spider: str = SPIDER) -> Path:
    """A project as `scrapy startproject` makes it, which requires a version of a library."""
    library = folder / f"shelf-{shelf}"
    (library / "shelf").mkdir(parents=True, exist_ok=True)
    (library / "shelf" / "__init__.py").write_text(f"VERSION = {shelf!r}\n")
    (library / "scrapy.cfg").write_text("[settings]\ndefault = shelf.none\n")
    wheel = build(library, folder, "shelf.none")
    project = folder / "shop"
    (project / "shop" / "spiders").mkdir(parents=True, exist_ok=True)
    (project / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
    (project / "requirements.txt").write_text(f"shelf @ {wheel.as_uri()}\n")
    for name, text in (("__init__", ""), ("settings", SETTINGS), ("spiders/__init__", ""), ("spiders/books", spider)):
        (project / "shop" / f"{name}.py").write_text(text)
    return project


def deploy(fleet: PlainFleet, *arguments: str) -> str:
    return fleet.run(f"from cli.main import main; print(main({list(arguments)!r}))", timeout_s=240)


def test_a_project_without_a_build_is_always_packed_into_the_same_bytes_and_without_what_is_not_of_it(tmp_path: Path) -> None:
    project = shop(tmp_path, "1.0")
    (project / ".env").write_text("TOKEN=secret")
    (project / "shop" / "__pycache__").mkdir()
    (project / "shop" / "__pycache__" / "x.pyc").write_text("")
    made = [build(project, into, "shop.settings") for into in (tmp_path / "a", tmp_path / "b") if not into.mkdir()]
    assert made[0].read_bytes() == made[1].read_bytes()
    with zipfile.ZipFile(made[0]) as archive:
        names = archive.namelist()
        about = archive.read(next(name for name in names if name.endswith("METADATA"))).decode()
    assert "shop/spiders/books.py" in names
    assert not [name for name in names if "env" in name or "pyc" in name]
    assert "Requires-Dist: shelf @ file:" in about
    (project / "requirements.txt").write_text("-r others.txt\n")
    with pytest.raises(ConfigError, match=r"'-r others\.txt': only requirements"):
        build(project, tmp_path, "shop.settings")
    with pytest.raises(ConfigError, match="the folder of a Scrapy project"):
        settings_module(project / "shop")


def test_only_the_wheel_that_was_deployed_is_installed_and_its_libraries_come_first(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)
    monkeypatch.setenv("TRAWL_DATA_DIR", str(tmp_path / "data"))
    version = store(redis_client, "books", shop(tmp_path, "1.0"), size=1, by="me")
    wheel = tmp_path / "data" / "wheels" / "books" / version.name / version.file
    honest = wheel.read_bytes()
    wheel.write_bytes(honest + b"!")
    with pytest.raises(ConfigError, match="is not what was deployed"):
        prepare(redis_client, "books", version)
    for evil in (replace(version, file="../../../x.whl"), replace(version, name="../x"), replace(version, digest="0" * 64)):
        with pytest.raises(ConfigError, match="is not a version that trawl deploy has made"):
            prepare(redis_client, "books", evil)
    wheel.write_bytes(honest)
    python = prepare(redis_client, "books", version)
    script = (
        "import shelf, shop.settings, scrapy, workers.crawler.warm_parent as warm; warm.preload()\n"
        "from scrapy.spiderloader import SpiderLoader; from scrapy.utils.project import get_project_settings as settings\n"
        "print(shelf.VERSION, scrapy.__version__, *SpiderLoader(settings()).list())"
    )
    command = [python, "-P", "-c", script]
    environment = {"PYTHONPATH": str(Path.cwd()), "SCRAPY_SETTINGS_MODULE": "shop.settings"}
    said = subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, check=True).stdout
    assert said.split() == ["1.0", scrapy.__version__, "books"]
    assert Services(redis_client).get("books") is not None, "a service that was not declared is, by its first deploy"
    assert not is_new(redis_client, "books")
    Services(redis_client).declare("books", ServiceRecord(size=0, max_waiting=MAX_WAITING))
    assert is_new(redis_client, "books"), "its first deploy failed: the next one brings its size"
    resize(redis_client, "books", 2)
    assert not is_new(redis_client, "books")
    assert desired_fleet(Registry(redis_client))["books"] == 2


def test_of_many_versions_the_oldest_that_its_crawlers_do_not_have_go(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"REDIS_URL": redis_url, "DATA_DIR": str(tmp_path / "data")}.items():
        monkeypatch.setenv(f"TRAWL_{name}", value)
    monkeypatch.setattr("fleet_operations.deploy.deploy.MOST_VERSIONS", 3)
    names = []
    for number in range(5):
        project = shop(tmp_path / str(number), f"{number}.0")
        (project / "shop" / "words.py").write_text(f"WORD = {number}\n")
        names.append(store(redis_client, "books", project, size=1, by="me").name)
        if number == 0:
            use(redis_client, "books", names[0])
    kept = [names[0], *names[3:]]
    assert [one.name for one in Deployments(redis_client).of("books").versions] == kept
    assert {one.name for one in (tmp_path / "data" / "wheels" / "books").iterdir()} == set(kept)


def test_a_rollback_of_the_first_deploy_leads_to_the_folder_as_its_crawlers_were_launched_from_it(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"REDIS_URL": redis_url, "DATA_DIR": str(tmp_path / "data")}.items():
        monkeypatch.setenv(f"TRAWL_{name}", value)
    Services(redis_client).declare("books", ServiceRecord(size=1, project="shop.settings"))
    project = shop(tmp_path, "1.0")
    monkeypatch.syspath_prepend(str(project))
    options = CrawlerOptions(spider="books", project="shop.settings")

    def launched() -> None:
        errand = keep_folder(redis_client, options)
        assert errand is not None
        errand()

    def written(word: str) -> None:
        (project / "shop" / "words.py").write_text(f"WORD = {word!r}\n")

    for word in ("ancient", "old", "old", "edited"):
        written(word)
        launched()
    known = Deployments(redis_client).of("books")
    assert len(known.versions) == 2, "the edited one, with which a crawler was started again, and the one before"
    assert not is_new(redis_client, "books")
    new = store(redis_client, "books", project, size=1, by="me")
    assert known.versions[-1].content == new.content
    use(redis_client, "books", new.name)
    before = Deployments(redis_client).of("books").previous
    assert before == known.versions[0].name
    written("later")
    python = prepare(redis_client, "books", known.versions[0])
    done = subprocess.run([python, "-P", "-c", "import shop.words as w; print(w.WORD)"], cwd="/", capture_output=True, text=True)
    assert done.stdout == "old\n", done.stderr
    launched()
    assert Deployments(redis_client).of("books").ran == known.ran, "after the first deploy it is not what crawlers run"


def test_a_folder_is_kept_where_it_can_come_back_alone(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"REDIS_URL": redis_url, "DATA_DIR": str(tmp_path / "data")}.items():
        monkeypatch.setenv(f"TRAWL_{name}", value)
    project = shop(tmp_path, "1.0")
    monkeypatch.syspath_prepend(str(project))
    options = CrawlerOptions(spider="books", project="shop.settings")
    kept = {
        "a job": keep_folder(redis_client, replace(options, job_of="books")),
        "a deployed version": keep_folder(redis_client, replace(options, python="/x/python")),
        "Trawl's own": keep_folder(redis_client, replace(options, project="workers.settings")),
        "an installed package": keep_folder(redis_client, replace(options, project="scrapy.settings")),
        "a module": keep_folder(redis_client, replace(options, project="settings")),
    }
    monkeypatch.setattr("fleet_operations.deploy.folder.MOST_BYTES", 10)
    kept["too large"] = keep_folder(redis_client, options)
    assert not any(kept.values()), kept
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("before", ["", "aaaa"])
def test_a_rollback_of_the_first_version_warns_that_the_folder_is_as_it_is_now(
    redis_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], before: str
) -> None:
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)
    taken: list[str] = []
    monkeypatch.setattr("cli.commands.deploy.switch", lambda _client, _service, version: taken.append(version) or 0)
    Deployments(redis_client).edit("books", lambda old: replace(old, current="bbbb", previous=before))
    assert main(["services", "versions", "rollback", "books"]) == 0
    assert taken == [before]
    assert ("as it is now, also edited" in capsys.readouterr().err) is (not before)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, redis_url: str) -> Path:
    """The folder of PATH, for an installation that has no pip, as the image's and a virtual environment of uv."""
    monkeypatch.setattr("fleet_operations.deploy.project_wheel.PathFinder", SimpleNamespace(find_spec=lambda name: None))
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)
    monkeypatch.setenv("TRAWL_DATA_DIR", str(tmp_path / "data"))
    (folder := tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_another_pip_installs_for_an_installation_without_one(programs: Path, redis_client: redis.Redis, tmp_path: Path) -> None:
    (programs / "pip").write_text(f'#!/bin/sh\nexec {sys.executable} -m pip "$@"\n')
    (programs / "pip").chmod(0o755)
    assert prepare(redis_client, "books", store(redis_client, "books", shop(tmp_path, "1.0"), size=1, by="me"))


@pytest.mark.usefixtures("programs")
def test_where_no_pip_is_deploy_names_the_ways_on_and_declares_nothing(
    redis_client: redis.Redis, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["deploy", str(shop(tmp_path, "1.0")), "--service", "books"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "there is no pip here" in line
    assert "roll an image" in line
    assert Services(redis_client).get("books") is None
    assert not Deployments(redis_client).of("books").versions
    version = Version(name="0" * 12, file="a.whl", digest="0" * 64, project="shop.settings")
    with pytest.raises(BuildFailed, match="roll an image"):  # a node, before it looks for the wheel
        prepare(redis_client, "books", version)


@pytest.mark.timeout(600)  # four deploys, each with pip and a roll
@pytest.mark.usefixtures("no_process_left")
def test_versions_with_other_libraries_are_rolled_out_and_back_without_losing_a_page(tmp_path: Path) -> None:
    with plain_fleet(tmp_path, "notes=0", settings="", pages=PAGES) as fleet:
        client, keys = fleet.redis.client(), CrawlKeys.for_spider("books")
        fleet.beat()
        fleet.node()
        wait_until(lambda: "a@test" in fleet.trawl("status", "--json"), fleet.said, 60)
        first = deploy(fleet, "deploy", str(shop(tmp_path, "1.0")), "--service", "books", "--size", "2")
        assert first.endswith("0"), first + fleet.said()
        fleet.wait_whole("books/0", "books/1", timeout_s=90)
        fleet.crawl("books:start_urls")
        fleet.wait_count("books:items", 10)

        def shelves() -> list[str]:
            return [json.loads(item)["shelf"] for item in client.lrange("books:items", 0, -1)]

        second = deploy(fleet, "deploy", str(shop(tmp_path, "2.0")), "--service", "books")
        assert "installed and checked on a@test" in second
        assert second.endswith("0"), second
        wait_until(lambda: shelves()[-1:] == ["2.0"], fleet.said, 60)
        good = Deployments(client).of("books")

        # one that cannot be loaded reaches no crawler; one that cannot begin a crawl is taken back
        broken = deploy(fleet, "deploy", str(shop(tmp_path, "3.0", spider="import nothing_of_the_kind")), "--service", "books")
        assert broken.splitlines()[-1] == "1", broken
        crashing = SPIDER + "\n    def __init__(self, *a, **k):\n        raise RuntimeError('it cannot begin')\n"
        failed = deploy(fleet, "deploy", str(shop(tmp_path, "4.0", spider=crashing)), "--service", "books")
        assert failed.splitlines()[-1] == "1", failed
        now = Deployments(client).of("books")
        assert now.current == good.current
        assert [bool(one.note) for one in now.versions] == [False, False, True, True]

        assert deploy(fleet, "services", "versions", "rollback", "books").endswith("0")
        assert Deployments(client).of("books").current == now.versions[0].name
        wait_until(lambda: (crawl := snapshot(client, "books", keys)).acked >= PAGES and not crawl.leased, fleet.said, 90)
        urls = [json.loads(item)["url"] for item in client.lrange("books:items", 0, -1)]
        assert len(urls) == len(set(urls)) == PAGES, "no page and no item was lost, or fetched twice"
        assert {"1.0", "2.0"} <= set(shelves())


PAGE = """
from redis_components.spiders import RedisSpider


class BooksSpider(RedisSpider):
    name = "books"

    def parse(self, response):
        {0}response.css("a")[0]  # a leaf of the site has none: the outage of this test
        {1}yield {{"url": response.url}}
        {2}
"""
INNER = range(1, 3000)
LEAVES = range(4000, 5900)


@pytest.mark.timeout(600)  # five deploys, each with pip and up to three rolls
@pytest.mark.usefixtures("no_process_left")
def test_a_version_that_raises_or_yields_nothing_is_taken_back_and_an_outage_of_the_site_is_not_blamed_on_a_version(
    tmp_path: Path,
) -> None:
    with plain_fleet(tmp_path, "notes=0", settings="", pages=6000) as fleet:
        client = fleet.redis.client()

        def seed(pages: range) -> None:
            client.delete("books:start_urls")
            client.rpush("books:start_urls", *(f"{fleet.site}/{number}" for number in pages))

        def deployed(*parts: str) -> str:
            fleet.wait_count("books:items", client.llen("books:items") + 30) if before() else None
            return deploy(fleet, "deploy", str(shop(tmp_path, "1.0", spider=PAGE.format(*parts))), "--service", "books")

        def before() -> str:
            return Deployments(client).of("books").current

        fleet.beat()
        fleet.node()
        wait_until(lambda: "a@test" in fleet.trawl("status", "--json"), fleet.said, 60)
        assert deployed("", "", "").endswith("0")
        seed(INNER)
        good = before()

        raising = deployed("", "", "raise ValueError('the new page')")
        assert raising.splitlines()[-1] == "1", raising
        assert "failed: 0 of 1 replaced, callbacks raised" in raising
        silent = deployed("", "return\n        ", "")
        assert silent.splitlines()[-1] == "1", silent
        assert "0 items from" in silent
        known = Deployments(client).of("books")
        assert known.current == good
        assert [one.note.partition(":")[0] for one in known.versions] == ["", *["worse than the version before"] * 2]

        better = deployed("", "self.logger.info('better')\n        ", "")
        assert better.endswith("0"), better
        good = before()
        fleet.wait_count("books:items", client.llen("books:items") + 30)
        seed(LEAVES)
        kept = deploy(fleet, "deploy", str(shop(tmp_path, "1.0", spider=PAGE.format("_ = ", "", ""))), "--service", "books")
        assert kept.splitlines()[-1] == "0", kept
        assert kept.count("failed: 0 of 1 replaced, ") == 2, "so does the version before"
        assert before() not in ("", good)
        assert Deployments(client).of("books").versions[-1].note == ""
