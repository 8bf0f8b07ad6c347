"""Spans of OpenTelemetry, as a collector gets them from real crawlers: seed, fetch, read and store of one page hang together."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from sqlalchemy import select

from demo.forum.process import ForumProcess
from forums.scheduling.seeding import seed
from forums.storage import Database, comments, posts
from forums.writer.store import store
from redis_components.errors import ConfigError
from redis_components.keys import CrawlKeys
from tests.support.demo_sites import declare
from tests.support.fleet import ROOT
from tests.support.otel_packages import FOLDER, can_import_them
from workers.tracing import traces

if not can_import_them():
    pytest.skip("OpenTelemetry is not installed: make otel", allow_module_level=True)

from tests.support.trace_collector import Collector, trace_collector  # it imports them

SPIDERS = ("forum_list", "forum_detail")
DETAIL = CrawlKeys.for_spider("forum_detail")


@pytest.fixture
def collector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """Where this process, and those that it starts, send their spans."""
    (tmp_path / "sites").mkdir()
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path / "sites"))
    monkeypatch.setenv("TRAWL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("TRAWL_DATABASE_URL", f"sqlite:///{tmp_path / 'trawl.sqlite'}")
    with trace_collector() as here:
        monkeypatch.setenv("TRAWL_TRACES_URL", here.url)
        monkeypatch.setenv("PYTHONPATH", str(FOLDER))
        traces.close()
        yield here
        traces.close()


def crawl(spider: str, redis_url: str, **environment: str) -> str:
    """Run one crawler until nothing waits for it; what it said."""
    command = [sys.executable, "-m", "workers.crawler", spider, "-s", "MAX_IDLE_TIME_BEFORE_CLOSE=1"]
    variables = {**os.environ, "TRAWL_REDIS_URL": redis_url, **environment}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_seed_fetch_read_and_store_of_each_page_are_one_trace(
    collector: Collector, tmp_path: Path, redis_url: str, redis_client: redis.Redis
) -> None:
    with ForumProcess(seed=7, forums=2, threads=4, comments=3, rate=0) as forum:
        declare(tmp_path / "sites", "one", forum.url)
        assert seed(redis_client)
        said = [crawl(spider, redis_url, TRAWL_LOG_FORMAT="json", TRAWL_LOG_LEVEL="DEBUG") for spider in SPIDERS]
        store(redis_client, SPIDERS)
        traces.close()
        pages = forum.stats()["total"]
    fetches, stored = collector.named("fetch"), collector.named("store")
    of_site = [span for span in fetches if span.attributes.get("trawl.site") == "one"]
    assert len(of_site) == pages - len([span for span in fetches if span not in of_site]), "the site's log has as many"
    assert {span.attributes["http.response.status_code"] for span in of_site} <= {200, 404}
    assert {span.service for span in of_site} == set(SPIDERS)
    assert len(collector.named("seed")) == 4, "the boards that the site file names, seeded once"
    with Database.from_url() as database:
        rows = sum(len(list(database.stream(select(table.c.id)))) for table in (posts, comments))
    items = sum(span.attributes["trawl.items"] for span in stored)
    assert rows < items == sum(span.attributes["trawl.items"] for span in collector.named("read")), "and the reports"
    chains = Counter(">".join(collector.ancestors(span)) for span in stored)
    assert chains["seed>fetch>read>fetch>read>store"], chains
    assert all(chain.startswith("seed>fetch>read>") for chain in chains), "a list, then a thread's pages one after the other"
    threads = {span.attributes["trawl.thread"] for span in of_site if "trawl.thread" in span.attributes}
    assert len(threads) == 4 * 2
    by_id = {span.id: span for span in collector.spans}
    assert all(by_id[span.parent].ended_ns <= span.began_ns for span in stored if span.parent)
    lines = [json.loads(line) for line in "\n".join(said).splitlines() if line.startswith("{")]
    told = {line["trace_id"] for line in lines if line["message"].startswith("Scraped from") and "trace_id" in line}
    assert told <= {span.trace for span in stored}
    assert told


def test_a_share_of_none_sends_nothing_and_all_is_stored(
    collector: Collector, tmp_path: Path, redis_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_TRACES_SHARE", "0")
    with ForumProcess(seed=7, forums=1, threads=2, comments=1, rate=0) as forum:
        declare(tmp_path / "sites", "one", forum.url)
        seed(redis_client)
        crawl("forum_list", redis_url)
        assert all(b'"traceparent":"00-' in task for task in redis_client.lrange(DETAIL.start_tasks(), 0, -1))
        crawl("forum_detail", redis_url)
        store(redis_client, SPIDERS)
        traces.close()
        assert collector.spans == []
        with Database.from_url() as database:
            assert len(list(database.stream(select(posts.c.id)))) == len(forum.truth()["posts"])


def test_a_collector_that_is_away_is_told_once_and_costs_no_page(
    collector: Collector, tmp_path: Path, redis_url: str, redis_client: redis.Redis
) -> None:
    collector.refuses = True
    with ForumProcess(seed=7, forums=2, threads=4, comments=3, rate=0) as forum:
        declare(tmp_path / "sites", "one", forum.url)
        seed(redis_client)
        said = [crawl(spider, redis_url, OTEL_BSP_MAX_EXPORT_BATCH_SIZE="2", OTEL_BSP_SCHEDULE_DELAY="10") for spider in SPIDERS]
        store(redis_client, SPIDERS)
        with Database.from_url() as database:
            assert len(list(database.stream(select(comments.c.id)))) == len(forum.truth()["comments"])
    assert [log.count("does not take spans") for log in said] == [1, 1]
    assert "Traceback" not in "".join(said)


@pytest.mark.parametrize("parent", [None, 7, "", "00-1-2-3", "x" * 1000, f"00-{'0' * 32}-{'0' * 16}-01", "ff-\n\x00"])
def test_a_parent_that_is_no_traceparent_begins_a_trace(collector: Collector, parent: object) -> None:
    span = traces.begin("read", {}, parent)
    assert span is not None
    span.end()
    traces.close()
    (told,) = collector.spans
    assert (told.parent, told.trace) == ("", span.traceparent.split("-")[1])


def test_a_span_that_failed_says_so_and_one_without_an_end_is_not_told(collector: Collector) -> None:
    begun = traces.begin("store", {"trawl.items": 3, "trawl.site": None})
    assert begun is not None
    traces.begin("seed", {}, begun.traceparent)
    begun.end("StorageError")
    traces.close()
    (told,) = collector.spans
    assert (told.name, told.failed, told.attributes) == ("store", True, {"trawl.items": 3, "error.type": "StorageError"})


def test_a_login_of_the_collector_comes_from_the_standard_variable(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abc")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "mine")
    if span := traces.begin("seed", {}):
        span.end()
    traces.close()
    assert {name.lower(): value for name, value in collector.headers[0].items()}["authorization"] == "Bearer abc"
    assert collector.spans[0].service == "mine"


@pytest.mark.parametrize("url", ["collector:4318", "http://user:word@collector:4318", "grpc://collector"])
def test_a_wrong_address_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_TRACES_URL", url)
    traces.close()
    with pytest.raises(ConfigError, match="TRAWL_TRACES_URL"):
        traces.is_on()


def test_without_the_packages_it_is_said_once_and_the_crawl_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TRAWL_TRACES_URL", "http://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "workers.tracing.trace_export", None)
    traces.close()
    with caplog.at_level(logging.WARNING):
        assert traces.begin("seed", {}) is None
        assert traces.begin("seed", {}) is None
    traces.close()
    (line,) = caplog.messages
    assert "pip install 'trawl-fleet[otel]'" in line


def test_nothing_of_it_is_imported_while_it_is_off() -> None:
    """But for its API, which redis-py loads where it finds it."""
    code = (
        "import sys, workers.crawler.process, forums.spiders.forum_detail, forums.writer.store, tasks\n"
        "from workers.tracing import traces\n"
        "assert traces.begin('seed', {}) is None\n"
        "far = ('opentelemetry.sdk', 'opentelemetry.exporter', 'opentelemetry.proto', 'google.protobuf')\n"
        "print([name for name in sys.modules if name.startswith(far)])"
    )
    others = ("TRAWL_TRACES", "OTEL_", "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
