"""A crawler of any project is led to files, other schemes and addresses of the network: nothing of it becomes an item."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from redis_components.admin.inspector import snapshot
from redis_components.keys import CrawlKeys
from tests.support import own_names
from tests.support.fleet import Program, program, toy_environment
from tests.support.processes import wait_until
from tests.support.watched_site import Page, WatchedSite

KEYS = CrawlKeys.for_spider("good")
PROJECT = """
from redis_components.spiders import RedisSpider

SPIDER_MODULES = ["{module}"]
SCHEDULER = "redis_components.scheduler.Scheduler"
DUPEFILTER_CLASS = "redis_components.dupefilter.RFPDupeFilter"
ITEM_PIPELINES = {{"redis_components.pipelines.RedisPipeline": 300}}
RETRY_TIMES = 1
{more}


class Good(RedisSpider):
    name = "good"
    {custom}

    def parse(self, response):
        yield {{"url": response.url, "text": response.text[:100]}}
        yield from response.follow_all(css="a")
"""
HANDLERS = dict.fromkeys(("http", "https"), "tests.support.own_names.Handler")
NAMED = 'ALLOW_PRIVATE_ADDRESSES = ["127.0.0.1"]'


@pytest.fixture
def private() -> Iterator[WatchedSite]:
    with WatchedSite() as site:
        site.answer = lambda _: Page("private")
        yield site


@pytest.fixture
def site(private: WatchedSite) -> Iterator[WatchedSite]:
    """A site that the project names, whose pages lead elsewhere."""
    with WatchedSite() as one:
        elsewhere = [
            f"http://localhost:{private.port}/link",
            f"http://127.0.0.2:{private.port}/link",
            "data:,link",
            "ftp://127.0.0.1/",
        ]
        one.pages["/1"] = Page("".join(f'<a href="{url}">x</a>' for url in [*elsewhere, "/2"]))
        one.pages["/2"] = Page("two")
        one.redirect("/file", "file:///proc/self/environ")
        one.redirect("/private", f"http://localhost:{private.port}/redirected")
        yield one


def crawl(folder: Path, redis_url: str, *, more: str, custom: str = "") -> tuple[list[str], dict[str, str]]:
    """Command and environment of a crawler of the project."""
    module = f"own_{folder.name.replace('-', '_')}"
    (folder / f"{module}.py").write_text(PROJECT.format(module=module, more=more, custom=custom))
    environment = toy_environment(redis_url, folder / "data", SCRAPY_SETTINGS_MODULE=module, PYTHONPATH=str(folder))
    return ["-m", "workers.crawler", "good"], environment


def named(folder: Path) -> dict[str, str]:
    """Environment in which `inner.books.test` resolves to this machine, for the handler of `own_names`."""
    (folder / "names.json").write_text(json.dumps({"inner.books.test": [["127.0.0.1"]]}))
    return {own_names.VARIABLE: str(folder / "names.json")}


def all_done(client: redis.Redis, crawler: Program) -> None:
    def over() -> bool:
        shot = snapshot(client, "good")
        return not (shot.ready or shot.leased or shot.start_tasks or shot.leased_tasks) and shot.dead + shot.items > 0

    wait_until(over, crawler.said, every_s=0.2)


def test_no_file_no_other_scheme_and_no_private_address_becomes_an_item(
    site: WatchedSite, private: WatchedSite, redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    command, environment = crawl(tmp_path, redis_url, more=f"{NAMED}\nDOWNLOAD_HANDLERS = {HANDLERS}")
    there = f"http://localhost:{private.port}"
    bad = [
        "file:///proc/self/environ",
        "data:,text",
        "ftp://127.0.0.1/x",
        "s3://bucket/x",
        f"{there}/task",
        f"http://127.1.0.1:{private.port}/",
        f"http://inner.books.test:{private.port}/",
    ]
    proxy = json.dumps({"url": f"{site.url}/proxied", "meta": {"proxy": there}})
    redis_client.rpush(KEYS.start_tasks(), *bad, proxy, f"{site.url}/file", f"{site.url}/private", f"{site.url}/1")
    with program(command, environment | named(tmp_path), tmp_path / "log") as crawler:
        all_done(redis_client, crawler)
        crawler.process.terminate()
        assert crawler.wait() == 0, crawler.said()
    items = [json.loads(item)["url"] for item in redis_client.lrange(KEYS.item_stream(), 0, -1)]
    assert sorted(items) == [f"{site.url}/1", f"{site.url}/2"], "its neighbours are crawled, and nothing else"
    assert private.paths() == []
    reasons = [json.loads(entry.split(b"\n")[0])["reason"] for entry in redis_client.lrange(KEYS.dead(), 0, -1)]
    for scheme in ("file", "data", "ftp", "s3"):
        assert any(f"{scheme}: is closed" in reason for reason in reasons), reasons
    assert sum("is not a public address; name it in ALLOW_PRIVATE_ADDRESSES" in reason for reason in reasons) == 6, reasons
    assert any("inner.books.test resolves to 127.0.0.1, not to a public address" in reason for reason in reasons), reasons
    assert len(reasons) == 13
    said = crawler.said()
    assert "Telnet" not in said
    assert "emote control" not in said
    assert not list(Path(environment["TRAWL_DATA_DIR"]).rglob("*remote*"))


def test_what_the_project_and_the_spider_name_is_open(
    private: WatchedSite, redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    handlers = 'DOWNLOAD_HANDLERS = {"file": "scrapy.core.downloader.handlers.file.FileDownloadHandler"}'
    custom = 'custom_settings = {"TELNETCONSOLE_ENABLED": True, "TELNETCONSOLE_PORT": [0]}'
    command, environment = crawl(tmp_path, redis_url, more=f"ALLOW_PRIVATE_ADDRESSES = True\n{handlers}", custom=custom)
    (tmp_path / "page.html").write_text("<p>a file</p>")
    file = (tmp_path / "page.html").as_uri()
    redis_client.rpush(KEYS.start_tasks(), file, f"http://localhost:{private.port}/task")
    with program(command, environment, tmp_path / "log") as crawler:
        all_done(redis_client, crawler)
        wait_until(lambda: redis_client.llen(KEYS.item_stream()) == 2, crawler.said)
        crawler.process.terminate()
        assert crawler.wait() == 0, crawler.said()
    assert "Telnet console listening" in crawler.said()
