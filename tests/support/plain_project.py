"""A Scrapy project as somebody has it who comes from scrapy-redis: its spiders know scrapy-redis's names and nothing of Trawl."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from monitoring.metrics.exposition import text_of
from monitoring.source import Source
from tests.support.crawl import link_site
from tests.support.fleet import ToyFleet
from tests.support.processes import wait_until
from workers.environment.declaration import parse_fleet

SPIDERS = '''
from redis_components.spiders import RedisSpider


class BooksSpider(RedisSpider):
    """Follows every link; `many` items for each page."""

    name = "books"
    many = 1

    def parse(self, response):
        for number in range(int(self.many)):
            yield {"url": response.url, "number": number}
        yield from response.follow_all(css="a")


class ShelvesSpider(BooksSpider):
    name = "shelves"
    many = 1000


class NotesSpider(BooksSpider):
    """All the keys are its own."""

    name = "notes"
    redis_key = "notes.taskqueue"
    custom_settings = {
        "SCHEDULER_QUEUE_KEY": "queue:of:%(spider)s",
        "SCHEDULER_DUPEFILTER_KEY": "seen:by:%(spider)s",
        "REDIS_ITEMS_KEY": "%(spider)s.results",
        "STATS_KEY": "counted:by:%(spider)s",
    }
'''
SETTINGS = """
from tests.support.light_scrapy import *

SPIDER_MODULES = ["plain_spiders"]
SCHEDULER = "redis_components.scheduler.Scheduler"
DUPEFILTER_CLASS = "redis_components.dupefilter.RFPDupeFilter"
STATS_CLASS = "redis_components.stats.RedisStatsCollector"
ITEM_PIPELINES = {"redis_components.pipelines.RedisPipeline": 300}
SCHEDULER_PERSIST = True
CONCURRENT_REQUESTS = 4
CONCURRENT_ITEMS = 4
ROBOTSTXT_OBEY = False
LOG_LEVEL = "INFO"
STATS_DUMP = False
"""
KNOWS_THE_FLEET = 'import os\nREDIS_URL = os.environ["TRAWL_REDIS_URL"]\n'


class PlainFleet(ToyFleet):
    """A fleet of one plain project, and a site of links for it."""

    site: str

    def crawl(self, key: str, page: int = 1) -> None:
        """Give it a start task, as a scrapy-redis user does."""
        self.redis.client().rpush(key, f"{self.site}/{page}")

    def trawl(self, *arguments: str) -> str:
        """What a `trawl` command prints in this fleet's environment."""
        return self.run(f"from cli.main import main; main({list(arguments)!r})")

    def shows(self, words: str, *command: str) -> str:
        """What a `trawl` command prints, in one line, once it has these words: what it reads may be written a moment after
        another sign of the same event.
        """
        printed = ""

        def has_them() -> bool:
            nonlocal printed
            printed = " ".join(self.trawl(*command).split())
            return words in printed

        wait_until(has_them, lambda: f"trawl {' '.join(command)} shows {words!r}; it shows {printed}\n{self.said()}")
        return printed

    def consumer_pid(self, node: str = "a") -> int:
        """The process of the node's pool that consumes."""
        return int((Path(self.environment["TRAWL_DATA_DIR"]) / f"run/{node}@test-consumers-0.lock").read_text())

    def metrics(self) -> str:
        """What Prometheus would get."""
        return text_of(Source(self.redis.url, parse_fleet(self._sizes)).look()).decode()

    def wait_count(self, key: str, number: int, timeout_s: float = 60.0) -> None:
        """Wait until a list has so many entries."""
        client = self.redis.client()
        wait_until(
            lambda: client.llen(key) >= number, lambda: f"{key} has {number}; {client.llen(key)}\n{self.said()}", timeout_s
        )


@contextmanager
def project_fleet(folder: Path, settings: str, sizes: str, site: str, **environment: str) -> Iterator[PlainFleet]:
    """A fleet of the project in `folder`/project, with `folder`/trawl.toml; its spiders find the address of the site in
    TEST_SITE.
    """
    environment = {
        "SCRAPY_SETTINGS_MODULE": settings,
        "PYTHONPATH": str(folder / "project"),
        "TRAWL_CONFIG": str(folder / "trawl.toml"),
        "TRAWL_DATABASE_URL": f"sqlite:///{folder / 'forums.sqlite'}",
        "TEST_SITE": site,
        **environment,
    }
    with PlainFleet(folder, sizes, **environment) as fleet:
        yield fleet


@contextmanager
def plain_fleet(
    folder: Path, sizes: str, *, settings: str = KNOWS_THE_FLEET, pages: int = 50, **environment: str
) -> Iterator[PlainFleet]:
    """`settings` are more lines of the project's settings. Beat and one node are started by the test."""
    project = folder / "project"
    project.mkdir()
    (project / "plain_spiders.py").write_text(SPIDERS)
    (project / "plain_settings.py").write_text(SETTINGS + settings)
    environment = {
        "SCRAPY_SETTINGS_MODULE": "plain_settings",
        "PYTHONPATH": str(project),
        "TRAWL_DATABASE_URL": f"sqlite:///{folder / 'forums.sqlite'}",
        **environment,
    }
    with link_site(folder, pages=pages) as site, PlainFleet(folder, sizes, **environment) as fleet:
        fleet.site = site
        yield fleet
