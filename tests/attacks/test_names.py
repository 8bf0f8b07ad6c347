"""Whoever can write to Redis names services, sites, slots and nodes as paths, options or lines of a log: no harm is done."""

from __future__ import annotations

import json
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from forums.sites import SiteError, load_site
from redis_components.errors import ConfigError
from redis_components.server.names import below, fleet_namespace, is_name, is_node_name, service_name, site_name, slot_number
from tasks.base import route
from tests.support import warm_start
from tests.support.broker_attack import AttackedWorker, body, task
from workers.environment.declaration import parse_fleet
from workers.logs.slot_log import SlotLog
from workers.process.options import parse
from workers.raw_pages.store import RawPage, RawStore, days_of, prune
from workers.state.keys import FleetKeys
from workers.state.nodes import NodeRecord, Nodes
from workers.state.registry import CrawlerRecord, CrawlerState, Registry

BAD_NAMES: list[Any] = [
    *(
        "../../out/x",
        "..",
        ".",
        "",
        "/etc/x",
        "a/b",
        "a\\b",
        ".hidden",
        "-sADDONS=x",
        "--story={}",
        "a b",
        " a",
        "a\n",
        "a\nroot::0:0",
    ),
    *("a\0", "\x1b]0;x\x07", "\u202e", "ä", "名", "a" * 129, "a%s", "a:b", "a*", "a,b", "a=1"),
    *(None, 5, True, ["x"], {"x": 1}, b"x"),
]
BAD_NUMBERS: list[Any] = [-1, 1000, 10**30, "0", "../../../out/num", True, 0.0, None, [0], "0\n"]
GOOD_NAMES = ["forum_list", "_own", "2gis", "news.de-1", "A", "a" * 128]


@pytest.mark.parametrize("name", BAD_NAMES, ids=repr)
def test_no_entrance_takes_such_a_name(name: Any, tmp_path: Path) -> None:
    for entrance in (
        lambda: service_name(name),
        lambda: site_name(name),
        lambda: SlotLog.of(name, 0, folder=lambda: tmp_path),
        lambda: route("trawl.run_crawler", (name, 0), {}, {}),
        lambda: route("trawl.run_crawler", (), {"spider": name}, {}),
    ):
        with pytest.raises(ConfigError) as told:
            entrance()  # type: ignore[no-untyped-call]
        assert str(told.value).isprintable()
        assert len(str(told.value)) < 500
    with pytest.raises((SiteError, TypeError)):
        load_site(name)
    assert not is_name(name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", BAD_NUMBERS, ids=repr)
def test_no_entrance_takes_such_a_number_of_a_slot(number: Any, redis_client: redis.Redis) -> None:
    for entrance in (slot_number, lambda n: SlotLog.of("toy", n), lambda n: Registry(redis_client).acquire("toy", n, "a@test")):
        with pytest.raises(ConfigError, match="whole numbers from 0 to 999"):
            entrance(number)
    assert redis_client.keys() == []


@pytest.mark.parametrize("name", GOOD_NAMES)
def test_good_names_are_taken_as_they_are(name: str, tmp_path: Path) -> None:
    assert service_name(name) == site_name(name) == name
    assert SlotLog.of(name, 999, folder=lambda: tmp_path).path == tmp_path / "logs" / f"{name}-999.log"
    assert parse_fleet(f"{name}=2") == {name: 2}
    assert route("trawl.run_crawler", (name, 0), {}, {}) == {"queue": f"crawlers.{name}", "routing_key": f"crawlers.{name}"}


@given(st.lists(st.text(max_size=8) | st.sampled_from(("..", ".", "a", "/", "a/../..", "\0")), min_size=1, max_size=4))
def test_a_path_of_any_parts_is_below_its_folder_or_refused(parts: list[str]) -> None:
    folder = Path("/data/trawl")
    try:
        path = below(folder, *parts)
    except ConfigError:
        return
    assert path.parts == (*folder.parts, *parts)


@pytest.mark.parametrize("text", ["my spider=1", "../x=1", ".a=1", "-a=1", "ä=1", f"{'a' * 200}=1", "a=99999999999"])
def test_a_fleet_with_a_spider_of_another_name_is_refused_with_the_fix(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^TRAWL_FLEET: .*(class News\(TheSpider\): name = \"news\"|spider=number)"):
        parse_fleet(text)


@pytest.mark.parametrize("namespace", ["a b", "a\x1b[2J", "%s", "a" * 200, "a\u202e"])
def test_a_job_has_a_name_that_can_be_shown(namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_NAMESPACE", namespace)
    with pytest.raises(ConfigError, match=r"^TRAWL_NAMESPACE = "):
        fleet_namespace()


def test_a_crawler_process_fills_no_slot_of_such_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in (["../x", "--slot=0", "--token=1"], ["toy", "--slot=-1", "--token=1"]):
        with pytest.raises(SystemExit, match="2"):
            parse(wrong)
    assert parse(["a spider of any name"]).spider == "a spider of any name"
    assert "cannot be the name of a service" in capsys.readouterr().err


def test_raw_pages_of_such_a_site_are_neither_written_nor_read_nor_deleted(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "data" / "raw"
    (outside / "2020-01-01").mkdir(parents=True)
    folder.mkdir(parents=True)
    page = RawPage(
        site="../../outside",
        page={},
        url="http://a/",
        request_url="http://a/",
        status=200,
        headers=(),
        body=b"x",
        fetched_at="2026-01-01T00:00:00.000Z",
    )
    store = RawStore(folder)
    store.keep(page)
    store.close()
    assert (store.kept, store.dropped) == (0, 1)
    assert days_of(folder, "../../outside") == []
    assert prune(folder, {"../../outside": 1.0}) == []
    assert sorted(path.name for path in outside.iterdir()) == ["2020-01-01"]
    assert list(folder.iterdir()) == []
    assert date(2020, 1, 1) in days_of(tmp_path, "outside")


def test_foreign_records_are_neither_shown_nor_launched_on(redis_client: redis.Redis) -> None:
    keys, registry = FleetKeys(), Registry(redis_client)
    good = CrawlerRecord(spider="toy", number=0, state=CrawlerState.RUNNING)
    by_hand = CrawlerRecord(spider="a spider of any name", pid=7, state=CrawlerState.RUNNING)
    records = {good.name: good, by_hand.name: by_hand, "elsewhere/1": good}
    for spider, number in (("../../x", 0), ("a\nb", 0), ("toy", -1), ("toy", 10**6), ("\x1b[2J", None), ("", None)):
        one = CrawlerRecord(spider=spider, number=number, pid=8, state=CrawlerState.RUNNING)
        records[one.name] = one
    for name, record in records.items():
        redis_client.hset(keys.crawlers(), name, record.to_json())
    assert {record.name for record in registry.crawlers()} == {good.name, by_hand.name}
    for node in (NodeRecord(name="a@test", services=("toy",)), NodeRecord(name="../x"), NodeRecord(name="b", services=("../x",))):
        redis_client.hset(keys.nodes(), node.name, node.to_json())
    assert [node.name for node in Nodes(redis_client).all()] == ["a@test"]
    with pytest.raises(ConfigError, match="cannot be the name of a node"):
        Nodes(redis_client).drain("a\nb")
    assert is_node_name("celery@host-1.example")


def test_a_task_makes_no_file_outside_of_the_data_folder_and_no_line_of_a_log(tmp_path: Path) -> None:
    """The attack itself, on a running worker; `trawl status` then knows the fleet's services and no other."""
    arguments = [(name, 0) for name in BAD_NAMES if not isinstance(name, bytes)] + [("toy", number) for number in BAD_NUMBERS]
    with AttackedWorker(tmp_path) as worker:
        worker.fleet.beat()
        before = {path for path in tmp_path.rglob("*") if path.suffix != ".log"}
        for pair in arguments:
            worker.send(task("trawl.run_crawler", body(pair)), "crawlers.toy")
        worker.assert_works("crawlers.toy")
        worker.wait(
            lambda: worker.worker.said().count("cannot be the name of a service") >= len(BAD_NAMES) - 1, "each is refused"
        )
        worker.wait(lambda: worker.worker.said().count("cannot be the number of a slot") >= len(BAD_NUMBERS), "each is refused")
        after = {path for path in tmp_path.rglob("*") if path.suffix != ".log"}
        made = {path for path in after - before if tmp_path / "data" not in path.parents and path != tmp_path / "data"}
        assert made == set()
        names = {path.name for path in (tmp_path / "data" / "logs").glob("*")}
        assert names <= {"toy-0.log"}
        assert "\nroot::" not in worker.worker.said()
        status = json.loads(worker.command("status", "--json"))
        assert [service["service"] for service in status["services"]] == ["toy"]
        worker.assert_works("crawlers.toy")


SPIDERS = """
from redis_components.spiders import RedisSpider

class Nachrichten(RedisSpider):
    name = "Nachrichten (de)"

    def parse(self, response):
        yield {"by": self.name, "text": response.text}
        if not response.meta.get("depth"):
            yield response.follow("data:,followed", callback=self.parse)
"""
NEWS = """

class News(Nachrichten):
    name = "news-de"
    redis_key = "Nachrichten (de):start_urls"

Nachrichten = None
"""


@pytest.mark.parametrize(("source", "name"), [(SPIDERS, "Nachrichten (de)"), (SPIDERS + NEWS, "news-de")])
def test_a_spider_of_any_name_crawls_and_a_subclass_with_another_takes_its_start_tasks(
    source: str, name: str, tmp_path: Path, redis_url: str, redis_client: redis.Redis
) -> None:
    (tmp_path / "spider.py").write_text(source)
    redis_client.rpush("Nachrichten (de):start_urls", "data:,first")
    settings = {
        "SCHEDULER": "redis_components.scheduler.Scheduler",
        "REDIS_URL": redis_url,
        "MAX_IDLE_TIME_BEFORE_CLOSE": "1",
        "FEEDS": json.dumps({"out.jsonl": {"format": "jsonlines"}}),
    }
    command = [sys.executable, "-m", "scrapy.cmdline", "runspider", "spider.py"]
    command += [part for pair in settings.items() for part in ("-s", "=".join(pair))]
    done = warm_start.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert sorted((row["by"], row["text"]) for row in rows) == [(name, "first"), (name, "followed")], done.stderr
