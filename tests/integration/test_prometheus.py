"""A real Prometheus scrapes a real exporter, and takes every query of the dashboards, the recording rules and the alerts."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from redis_components.frontier.messages import StatChange
from redis_components.keys import CrawlKeys
from tests.integration.test_exporter_process import running_exporter
from tests.support.dashboards import DASHBOARDS, queries
from tests.support.owner import Owner
from tests.support.processes import wait_until
from tests.support.prometheus import MISSING, PROMETHEUS, prometheus, rules_of
from tests.support.redis_server import RedisServer
from workers.state.rolls import Roll, RollNote, RollState


@pytest.mark.skipif(PROMETHEUS is None, reason=MISSING)
def test_prometheus_takes_every_query_and_rule_and_finds_what_was_crawled(
    redis_server: RedisServer, redis_url: str, tmp_path: Path
) -> None:
    owner = Owner(redis_server.client(), "crawler-1", keys=CrawlKeys.for_spider("forum_list")).open()
    owner.frontier.listeners.stats = lambda final: [StatChange("max", "item_scraped_count", "41")]
    owner.add("one")
    owner.advance()
    with running_exporter(redis_url) as (_, port), prometheus(tmp_path, port) as server:
        scraped = 'collector_scraped_item_count{service="forum_list"}'
        wait_until(lambda: server.values(scraped) == ["41"], server.said, 60)
        for _, query in queries():
            server.values(re.sub(r"\$\w+", ".*", query))  # an HTTP error where it is wrong
        (fleet,) = [one for one in DASHBOARDS if one["uid"] == "trawl-fleet"]
        assert server.values(fleet["panels"][0]["targets"][0]["expr"]) == ["1"], "Redis answers"
        assert server.values('sum(trawl_crawlers_desired{service=~".*"})') == ["3"]

        def recorded() -> set[str]:
            rules = [rule for group in server.get("rules")["groups"] for rule in group["rules"]]
            assert [rule for rule in rules if rule.get("lastError")] == []
            return {rule["name"] for rule in rules if rule["health"] == "ok"}

        every = {rule.get("record") or rule["alert"] for path in ("alerts.yml", "recording.yml") for rule in rules_of(path)}
        wait_until(lambda: recorded() == every, server.said, 60)
        wait_until(lambda: server.values("service:trawl_pages:rate5m") != [], server.said, 60)

        rolls = RollNote(redis_server.client())
        rolls.write(failed := Roll(id="roll", services=("forum_list",), state=RollState.FAILED))
        wait_until(lambda: "TrawlRollFailed" in server.firing(), server.said, 60)  # all others: test_alerts_live.py
        rolls.write(replace(failed, state=RollState.ABORTED))
        wait_until(lambda: "TrawlRollFailed" not in server.firing(), server.said, 60)
