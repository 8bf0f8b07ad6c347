"""The fleet of docker-compose.yml, every service's real command and environment, crawls the demo forum into its database."""

from __future__ import annotations

import base64
import http.client
import json
import re
import secrets
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.support import warm_start
from tests.support.compose_file import ROOT
from tests.support.compose_processes import MARK, ComposeProcesses
from tests.support.processes import none_left, wait_until
from workers.state.beats import Beats, BeatView

PASSWORD = secrets.token_hex(8)
SEED = "from tasks import seed_forums; import json; print(json.dumps(seed_forums.delay(['f1'], site='demo').get(timeout=60)))"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ComposeProcesses]:
    """All services, up and healthy. The last test stops them."""
    folder = tmp_path_factory.mktemp("compose")
    given = {
        "TRAWL_REDIS_PASSWORD": secrets.token_hex(16),
        "FLOWER_BASIC_AUTH": f"admin:{PASSWORD}",
        "TRAWL_SITES_DIR": "./demo/sites",
        "TRAWL_FLEET": "forum_list=1,forum_detail=2",
    }
    with none_left((MARK, str(folder))), ComposeProcesses(folder, given) as fleet:
        fleet.up()
        yield fleet


def _get(port: int, path: str, login: str | None = None) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Authorization": "Basic " + base64.b64encode(login.encode()).decode()} if login else {}
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def _metrics(fleet: ComposeProcesses) -> dict[tuple[str, str], float]:
    """(metric, service) -> value, summed over other labels."""
    found: dict[tuple[str, str], float] = {}
    for line in _get(fleet.port("exporter"), "/metrics")[1].splitlines():
        if m := re.match(r'(\w+)\{.*\bservice="(\w+)".*\} (\S+)$', line):
            found[m[1], m[2]] = found.get((m[1], m[2]), 0.0) + float(m[3])
    return found


def _rows(database: Path, query: str) -> int:
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        count: int = connection.execute(query).fetchone()[0]
    connection.close()
    return count


@pytest.mark.timeout(600)
def test_what_is_seeded_arrives_in_the_database(fleet: ComposeProcesses) -> None:
    seeded = warm_start.run(
        [sys.executable, "-c", SEED],
        family="celery",
        env=fleet.environment("worker-control"),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert seeded.returncode == 0, seeded.stderr + fleet.said()
    # Beat seeds as well: the forum may be on its way already.
    assert re.match("seeded|pending", json.loads(seeded.stdout)["demo/f1"])
    database = fleet.folder_of("database") / "trawl.sqlite"
    for query, least in (
        ("SELECT count(*) FROM posts WHERE forum_id = 'f1'", 60),
        ("SELECT count(DISTINCT forum_id) FROM posts", 4),
        ("SELECT count(*) FROM comments", 1000),
    ):
        wait_until(
            lambda query=query, least=least: _rows(database, query) >= least,  # type: ignore[misc]
            lambda query=query: f"{query}; all said:\n{fleet.said()}",  # type: ignore[misc]
            90,
            every_s=0.5,
        )


def test_the_exporter_counts_what_was_crawled_and_who_crawls(fleet: ComposeProcesses) -> None:
    def whole() -> bool:
        now = _metrics(fleet)
        sizes = {service: now["trawl_crawlers_desired", service] for service in ("forum_list", "forum_detail")}
        return sizes == {service: now["trawl_crawlers_up", service] for service in sizes} == {"forum_list": 1, "forum_detail": 2}

    wait_until(whole, "as many crawlers are up as are desired", 60)
    names = (
        "collector_downloader_request_count",
        "collector_downloader_response_count",
        "collector_downloader_response_bytes",
        "collector_downloader_response_status_count",
        "collector_scraped_item_count",
        "trawl_acked_requests_total",
    )

    def without_figures() -> list[tuple[str, str]]:  # crawlers tell them with a later message than what they found
        now = _metrics(fleet)
        return [(name, service) for service in ("forum_list", "forum_detail") for name in names if not now.get((name, service))]

    wait_until(lambda: not without_figures(), lambda: f"figures of {without_figures()}\n{fleet.said()}", 90, every_s=0.5)
    assert [_metrics(fleet)["trawl_bad_items", service] for service in ("forum_list", "forum_detail")] == [0, 0]
    wait_until(lambda: "2 of 2" in _get(fleet.port("exporter"), "/")[1], "the page shows both crawlers", 60)
    status, page = _get(fleet.port("exporter"), "/")
    assert status == 200
    assert "detail@" in page


def test_flower_asks_for_a_password(fleet: ComposeProcesses) -> None:
    port = fleet.port("flower")
    for path in ("/", "/workers", "/api/workers"):
        assert _get(port, path)[0] == 401, path
        assert _get(port, path, "admin:guess")[0] == 401, path
    assert _get(port, "/", f"admin:{PASSWORD}")[0] == 200
    wait_until(
        lambda: all(
            f"{node}@" in _get(port, "/api/workers?status=1", f"admin:{PASSWORD}")[1] for node in ("list", "detail", "control")
        ),
        "Flower shows the three workers",
        60,
        every_s=0.5,
    )


def test_of_two_beats_one_leads_and_the_other_takes_over_at_once(fleet: ComposeProcesses) -> None:
    with redis.Redis.from_url(fleet.redis_url) as client:

        def look() -> BeatView:
            return Beats(client).look(client.time()[0])

        wait_until(lambda: len(look().waiting) == 1 and not look().stalled, lambda: f"one leads and sends: {look()}")
        view = look()
        (old,) = [name for name, program in fleet.running.items() if f":{program.process.pid}" in (view.leader or "")]
        fleet.running[old].process.terminate()
        assert fleet.running[old].wait(60) == 0
        wait_until(lambda: look().leader == view.waiting[0], fleet.said)


@pytest.mark.timeout(600)
def test_sigterm_stops_everything_and_nothing_is_left(fleet: ComposeProcesses) -> None:
    with none_left((MARK, str(fleet.folder))):
        codes = fleet.stop()
    assert codes == dict.fromkeys(fleet.running, 0), fleet.said()
    for name, program in fleet.running.items():
        assert "Traceback" not in program.said(), f"{name}:\n{program.said()[-3000:]}"
