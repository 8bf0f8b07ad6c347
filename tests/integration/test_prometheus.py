"""A real Prometheus scrapes a real exporter, and takes every query of the dashboards, the recording rules and the alerts."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from monitoring.dashboards import DASHBOARDS
from redis_components.frontier.messages import StatChange
from redis_components.keys import CrawlKeys
from tests.integration.test_exporter_process import running_exporter
from tests.support.owner import Owner
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer

FOLDER = Path(__file__).parents[2] / "deploy" / "prometheus"
PROMETHEUS = os.environ.get("PROMETHEUS") or shutil.which("prometheus")


class Prometheus:
    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}/api/v1"

    def get(self, path: str, **query: str) -> dict[str, object]:
        with urllib.request.urlopen(f"{self._base}/{path}?{urllib.parse.urlencode(query)}", timeout=30) as response:
            return dict(json.load(response)["data"])

    def values(self, query: str) -> list[str]:
        found = self.get("query", query=query)["result"]
        assert isinstance(found, list)
        return [one["value"][1] for one in found]


@contextmanager
def prometheus(folder: Path, exporter: int) -> Iterator[Prometheus]:
    """The project's configuration, with another address and a shorter interval."""
    config = yaml.safe_load((FOLDER / "prometheus.yml").read_text("utf-8"))
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(FOLDER / name) for name in config["rule_files"]]
    config["scrape_configs"] = config["scrape_configs"][:1]
    config["scrape_configs"][0]["static_configs"] = [{"targets": [f"127.0.0.1:{exporter}"]}]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    options = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data", "--web.listen-address=127.0.0.1:0"]
    path = folder / "log"
    with path.open("w") as log, subprocess.Popen([str(PROMETHEUS), *options], stdout=log, stderr=log) as process:
        try:
            listens = wait_until(
                lambda: re.search(r'"Listening on" address=127\.0\.0\.1:(\d+)', path.read_text()), path.read_text, 60
            )
            yield Prometheus(int(listens[1]))
        finally:
            process.kill()


@pytest.mark.skipif(PROMETHEUS is None, reason="prometheus is not installed (apt-get install prometheus, or PROMETHEUS=path)")
def test_prometheus_takes_every_query_and_rule_and_finds_what_was_crawled(
    redis_server: RedisServer, redis_url: str, tmp_path: Path
) -> None:
    owner = Owner(redis_server.client(), "crawler-1", keys=CrawlKeys.for_spider("forum_list")).open()
    owner.frontier.listeners.stats = lambda final: [StatChange("max", "item_scraped_count", "41")]
    owner.add("one")
    owner.advance()
    with running_exporter(redis_url) as (_, port), prometheus(tmp_path, port) as server:

        def said() -> str:
            return (tmp_path / "log").read_text()[-3000:]

        wait_until(lambda: server.values('collector_scraped_item_count{service="forum_list"}') == ["41"], said, 60)
        queries = [query for one in DASHBOARDS for panel in one.panels for query in panel.queries.values()]
        for query in queries:
            server.values(re.sub(r"\$\w+", ".*", query))  # an HTTP error where it is wrong
        assert server.values(queries[0]) == ["1"], "Redis answers"
        assert server.values('sum(trawl_crawlers_desired{service=~".*"})') == ["3"]

        def recorded() -> set[str]:
            groups = server.get("rules")["groups"]
            assert isinstance(groups, list)
            rules = [rule for group in groups for rule in group["rules"]]
            assert [rule for rule in rules if rule.get("lastError")] == []
            return {rule["name"] for rule in rules if rule["health"] == "ok"}

        every = {rule.get("record") or rule["alert"] for path in ("alerts.yml", "recording.yml") for rule in _rules(path)}
        wait_until(lambda: recorded() == every, said, 60)
        wait_until(lambda: server.values("service:trawl_pages:rate5m") != [], said, 60)


def _rules(name: str) -> list[dict[str, str]]:
    return [rule for group in yaml.safe_load((FOLDER / name).read_text("utf-8"))["groups"] for rule in group["rules"]]
