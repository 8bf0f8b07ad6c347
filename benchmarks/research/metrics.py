"""Metrics of a project's own: from an extension in EXTENSIONS to Prometheus and the page, over two crawlers.

A Scrapy project that knows nothing of Trawl but its settings has the extension below, of the kind that Scrapy's own
documentation shows: it counts answers by status, and notes how many pages the process has read. Two crawlers of a real fleet
crawl a site of 300 pages; then the same two figures are read from each place where they can be seen. `counted` is summed over
both, also when one has ended; `noted` over the crawlers that run.
"""

from __future__ import annotations

import html
import json
import re
import tempfile
import urllib.request
from pathlib import Path

import pytest

from benchmarks.support.report import Report
from redis_components.admin.inspector import snapshot
from tests.integration.test_exporter_process import running_exporter
from tests.support.plain_project import KNOWS_THE_FLEET, PlainFleet, plain_fleet
from tests.support.processes import none_left, wait_until
from tests.support.prometheus import MISSING, PROMETHEUS, prometheus
from tests.support.watched_fleet import MARK

EXTENSION = '''
from scrapy import signals


class AnswerCounts:
    """Counts answers by their status, and notes how many this process has had."""

    def __init__(self, stats):
        self.stats = stats
        self.answers = 0

    @classmethod
    def from_crawler(cls, crawler):
        extension = cls(crawler.stats)
        crawler.signals.connect(extension.response_received, signals.response_received)
        return extension

    def response_received(self, response):
        self.answers += 1
        self.stats.inc_value(f"answers/{response.status}/seen")
        self.stats.set_value("answers/of_this_process", self.answers)
'''
SETTINGS = """
EXTENSIONS = {"plain_extension.AnswerCounts": 500}
STATS_METRICS = ["answers/{status}/seen", "answers/of_this_process"]
"""
COUNTED = 'trawl_stat{service="books",spider="books",stat="answers/200/seen"}'
NOTED = 'trawl_stat{service="books",spider="books",stat="answers/of_this_process"}'


def run(*, small: bool) -> Report:
    """Crawl, and read the figures everywhere. The small form has one crawler and 20 pages, and asks no Prometheus."""
    report = Report(title="Metrics", method=" ".join((__doc__ or "").split("\n\n", 1)[1].split()))
    crawlers, pages = (1, 20) if small else (2, 300)
    with (
        pytest.MonkeyPatch.context() as environment,
        tempfile.TemporaryDirectory(prefix="trawl-research-") as name,
        none_left((MARK, name)),
        plain_fleet(Path(name), f"books={crawlers}", settings=KNOWS_THE_FLEET + SETTINGS, pages=pages) as fleet,
    ):
        environment.setenv("TRAWL_FLEET", f"books={crawlers}")
        (Path(name) / "project" / "plain_extension.py").write_text(EXTENSION)
        fleet.beat()
        fleet.node()
        fleet.crawl("books:start_urls")
        fleet.wait_count("books:items", pages, 180)
        with running_exporter(fleet.redis.url) as (_, port):
            rows = [["the site: pages", pages, ""], *places(fleet, port, pages)]
            if not small and PROMETHEUS is not None:
                rows.append(["Prometheus", *asked_of_prometheus(Path(name), port, pages)])
            elif not small:
                report.caveats.append(MISSING)
    report.table(["seen in", "counted", "noted"], rows)
    return report


def places(fleet: PlainFleet, port: int, pages: int) -> list[list[object]]:
    """Read both figures in Redis, in the exporter's text, and on the service's page, once all pages are in there."""

    def text(path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as response:
            return str(response.read().decode())

    def metric(name: str) -> str:
        found = re.search(rf"(?m)^{re.escape(name)} (\S+)$", text("/metrics"))
        return found[1] if found else ""

    wait_until(lambda: metric(COUNTED) == f"{pages}.0", lambda: f"{text('/metrics')}\n{fleet.said()}", 60)
    stats = snapshot(fleet.redis.client(), "books").stats
    page = html.unescape(text("/service/books"))
    shown = dict(re.findall(r"<th>(answers/[^<]+)</th><td[^>]*>([^<]+)<", page))
    return [
        ["the hash books:stats", stats["answers/200/seen"], ""],
        ["the exporter's /metrics", metric(COUNTED), metric(NOTED)],
        ["the page /service/books", shown.get("answers/200/seen", ""), shown.get("answers/of_this_process", "")],
    ]


def asked_of_prometheus(folder: Path, port: int, pages: int) -> tuple[str, str]:
    """Query a real Prometheus that scrapes the exporter."""
    with prometheus(folder, port) as server:
        wait_until(lambda: server.values(COUNTED) == [str(pages)], lambda: json.dumps(server.values(COUNTED)), 60)
        return server.values(COUNTED)[0], server.values(NOTED)[0]
