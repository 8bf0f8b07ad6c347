"""Each alert fires while its trouble lasts and is over afterwards: in a real Prometheus that scrapes a real exporter."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from redis_components.embedded.files import free_port
from tests.integration.test_exporter_process import running_exporter
from tests.support.processes import wait_until
from tests.support.prometheus import MISSING, PROMETHEUS, Prometheus, hastened, prometheus, rules_of
from tests.support.redis_server import RedisServer
from tests.support.troubles import FLEET, TROUBLES, Fleet

pytestmark = [pytest.mark.processes, pytest.mark.skipif(PROMETHEUS is None, reason=MISSING)]
GROWTH_BYTES = 20_000_000
CAUSED_OTHERWISE = {"TrawlExporterDown", "TrawlRedisAway", "TrawlRedisFillsUp"}


def wait(fleet: Fleet, server: Prometheus, alerts: Callable[[], set[str]], wanted: set[str]) -> None:
    """Wait until exactly these alerts are found, the fleet living on."""

    def so() -> bool:
        fleet.tick()
        return alerts() == wanted

    def differs() -> str:
        return f"missing: {sorted(wanted - alerts())}, too many: {sorted(alerts() - wanted)}\n{server.said()}"

    wait_until(so, differs, 60, every_s=0.5)


def wait_well(fleet: Fleet, server: Prometheus) -> None:
    """Wait until there is a rate of everything, and no alert."""

    def so() -> bool:
        fleet.tick()
        return server.values("count_over_time(trawl_crawler_restarts_total[1m]) > 2") != []

    wait_until(so, server.said, 60, every_s=0.5)
    wait(fleet, server, server.firing, set())


def test_every_alert_has_its_trouble() -> None:
    assert {one["alert"] for one in rules_of("alerts.yml")} == TROUBLES.keys() | CAUSED_OTHERWISE


def test_alerts_fire_and_are_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_FLEET", FLEET)
    with RedisServer(aof=True) as redis_server:
        fleet, port = Fleet(redis_server), free_port()
        with running_exporter(redis_server.url, port=port) as (exporter, _), prometheus(tmp_path, port, hastened) as server:
            wait_well(fleet, server)
            for cause, _ in TROUBLES.values():
                cause(fleet)
            wait(fleet, server, server.fired, set(TROUBLES))
            for _, cure in TROUBLES.values():
                cure(fleet)
            wait(fleet, server, server.firing, set())

            redis_server.stop()
            wait_until(lambda: server.firing() == {"TrawlRedisAway"}, server.said, 60)
            redis_server.start()
            wait(fleet, server, server.firing, set())
            stop(exporter)
            wait_until(lambda: "TrawlExporterDown" in server.firing(), server.said, 60)
            with running_exporter(redis_server.url, port=port):
                wait(fleet, server, server.firing, set())


def stop(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()


def test_that_redis_fills_up_is_told_before_it_is_full(tmp_path: Path) -> None:
    """Its memory is looked at once a minute, so this takes two."""
    with RedisServer(aof=True) as redis_server:
        fleet = Fleet(redis_server)
        fleet.client.config_set("maxmemory", fleet.client.info()["used_memory"] + 10 * GROWTH_BYTES)
        with running_exporter(redis_server.url) as (_, port), prometheus(tmp_path, port, hastened) as server:
            wait_until(lambda: server.values("trawl_redis_max_memory_bytes"), server.said, 60)
            fleet.client.set("growth", bytes(GROWTH_BYTES))
            wait_until(lambda: "TrawlRedisFillsUp" in server.firing(), server.said, 90, every_s=1.0)
            wait_until(lambda: "TrawlRedisFillsUp" not in server.firing(), server.said, 60, every_s=1.0)
