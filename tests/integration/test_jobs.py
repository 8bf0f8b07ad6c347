"""Finite jobs on a real fleet: of a plain Scrapy project that knows nothing of Redis, and of a spider that is fed from it."""

from __future__ import annotations

import ast
import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis

from fleet_operations.jobs import jobs
from redis_components.errors import ConfigError
from tasks import crawl
from tests.support.plain_project import PlainFleet, plain_fleet
from tests.support.processes import wait_until
from tests.support.trawl_command import commands, one_line
from workers.state.jobs import Jobs, JobState

SPIDER = '''
import scrapy


class LibrarySpider(scrapy.Spider):
    """Knows Scrapy alone; `first` is its argument."""

    name = "library"

    def __init__(self, first="", **named):
        super().__init__(**named)
        self.start_urls = [first]

    def parse(self, response):
        yield {"url": response.url}
        yield from response.follow_all(css="a")
'''
SETTINGS = """
from tests.support.light_scrapy import *
SPIDER_MODULES = ["plain_spiders", "library"]
CONCURRENT_REQUESTS = 2
DOWNLOAD_DELAY = 0.05
RANDOMIZE_DOWNLOAD_DELAY = False
ROBOTSTXT_OBEY = False
ITEM_PIPELINES = {"redis_components.pipelines.RedisPipeline": 300}
"""
PAGES = 40


@contextmanager
def library_fleet(folder: Path) -> Iterator[PlainFleet]:
    with plain_fleet(folder, "books=0", settings="", pages=PAGES) as fleet:
        (folder / "project" / "library.py").write_text(SPIDER)
        (folder / "project" / "plain_settings.py").write_text(SETTINGS)
        fleet.beat()
        fleet.node()
        yield fleet


def fetched(fleet: PlainFleet, key: str) -> list[str]:
    return [json.loads(item)["url"] for item in fleet.redis.client().lrange(key, 0, -1)]


def wait_state(fleet: PlainFleet, name: str, state: JobState) -> Any:
    store = Jobs(fleet.redis.client())
    wait_until(
        lambda: (job := store.get(name)) is not None and job.state is state, lambda: f"{store.get(name)}\n{fleet.said()}", 90
    )
    return store.get(name)


@pytest.mark.usefixtures("no_process_left")
def test_a_crawl_of_two_crawlers_ends_whole_when_one_is_killed_is_cancelled_and_resumed(tmp_path: Path) -> None:
    with library_fleet(tmp_path) as fleet:
        client = fleet.redis.client()
        task = ast.literal_eval(
            fleet.ask(f"repr(crawl.delay('library', {{'first': '{fleet.site}/1'}}, {{'DOWNLOAD_DELAY': 0.5}}, 2, id='one').id)")
        )
        first, _ = fleet.crawler("library.one/0"), fleet.crawler("library.one/1")
        wait_until(lambda: client.llen("library:items") >= 5, fleet.said, 60)
        os.kill(first.pid, signal.SIGKILL)
        told = ast.literal_eval(fleet.ask(f"app.AsyncResult({task!r}).get(timeout=90)"))
        assert (told["state"], told["reason"], told["dead"], told["left"]) == ("finished", "finished", 0, 0)
        assert set(fetched(fleet, "library:items")) == {f"{fleet.site}/{n}" for n in range(1, PAGES + 1)}
        job = wait_state(fleet, "library.one", JobState.FINISHED)
        assert job.figures.items > PAGES // 2, "the killed crawler took figures of its last moments along, and no items"
        keys = {key for key in client.scan_iter("library.one:*") if client.ttl(key) < 0}
        assert not keys, "what is over expires"
        assert client.ttl("library:items") == -1, "items do not"

        # its spider is asked by another job, cancelled in the middle, resumed by its id
        client.delete("library:items")
        fleet.trawl("job", "start", "library", "-a", f"first={fleet.site}/1", "--id", "two", "-s", "DOWNLOAD_DELAY=0.5")
        wait_until(lambda: client.llen("library:items") >= 5, fleet.said, 60)
        jobs.cancel(client, "two")
        left = wait_state(fleet, "library.two", JobState.CANCELLED).figures.left
        assert left > 0
        assert client.llen("library:items") < PAGES
        fleet.trawl("job", "resume", "two")
        assert wait_state(fleet, "library.two", JobState.FINISHED).resumed == 1
        assert sorted(fetched(fleet, "library:items")) == sorted(f"{fleet.site}/{n}" for n in range(1, PAGES + 1))

        # a spider that is fed from Redis waits for ever as a service, and ends as a job
        (urls := tmp_path / "urls.txt").write_text(f"{fleet.site}/1\n")
        fleet.trawl("job", "start", "books", "--urls", str(urls), "--id", "three", "-s", "CLOSESPIDER_ITEMCOUNT=10")
        assert wait_state(fleet, "books.three", JobState.FINISHED).reason == "closespider_itemcount"
        assert 10 <= client.llen("books:items") < PAGES


def test_what_cannot_be_a_job_is_one_line_and_leaves_nothing(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    trawl = commands(redis_url, tmp_path, monkeypatch, capfd)
    monkeypatch.setenv("TRAWL_FLEET", "books=1")
    (urls := tmp_path / "urls.txt").write_text("http://a.example/1\nno-url\n")
    one_line(trawl("job", "start", "books", "--urls", str(urls)), 2, "no-url")
    one_line(trawl("job", "start", "books", "--id", "../x"), 2, "'../x'", "letters")
    one_line(trawl("job", "start", "nobody"), 2, "nobody is not a service", "unknown spider")
    one_line(trawl("job", "cancel", "none"), 2, "no job 'none'")
    assert not Jobs(redis_client).all()
    assert not list(redis_client.scan_iter("books.*"))
    assert trawl("job", "start", "books", "--id", "one", "-a", "category=x").out == "books.one\n"
    one_line(trawl("job", "start", "books", "--id", "one"), 2, "there is a job books.one already")
    one_line(trawl("job", "resume", "one"), 2, "only a job that is over")
    store = Jobs(redis_client)
    store.swap(replace(store.all()["books.one"], state=JobState.FINISHED, reason="finished"))
    one_line(trawl("job", "resume", "one"), 2, "books.one is finished and has nothing left: trawl job start")
    assert json.loads(trawl("job", "show", "one", "--json").out)["arguments"] == {"category": "x"}
    with pytest.raises(ConfigError, match="ITEM_PIPELINES: cannot be set by a task"):
        crawl("books", settings={"ITEM_PIPELINES": {}})
