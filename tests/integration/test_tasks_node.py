"""The tasks on a real worker, as a user's shell sends them, while a crawler occupies the only place of the node."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from redis_components.keys import CrawlKeys
from tests.support.fleet import ToyFleet
from tests.support.processes import wait_until
from workers.state.nodes import Nodes

pytestmark = pytest.mark.usefixtures("no_process_left")

POST = {
    "kind": "post",
    "site": "demo",
    "id": "p1",
    "forum_id": "f1",
    "title": "A title",
    "body": "A body",
    "author": "somebody",
    "created_at": "2026-01-02T03:04:05Z",
    "views": 1,
    "reply_count": 0,
    "last_reply_at": None,
    "url": "http://127.0.0.1/post/p1",
    "fetched_at": "2026-01-02T03:04:06Z",
}

FIVE_ANSWERS = """
import json
from tasks import refresh_posts, run_crawler, scale_fleet, seed_forums
def answer(sent):
    try:
        return sent.get(timeout=60)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
sent = [run_crawler.delay("toy", 0), run_crawler.delay("toy_two", 0), scale_fleet.delay(nix=1), seed_forums.delay("f1")]
print(json.dumps([answer(one) for one in [*sent, refresh_posts.delay(["p1"], "nowhere")]]))
"""

FIRST_CRAWLING_EVENT = """
from tasks import app
def show(event):
    print(event["name"], event["args"], event["result"])
    raise SystemExit
with app.connection() as connection:
    app.events.Receiver(connection, handlers={"task-crawling": show}).capture(limit=None, timeout=60)
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ToyFleet]:
    with ToyFleet(tmp_path, "toy=1,toy_two=1", TRAWL_NODE_CRAWLERS="1", TRAWL_SITES_DIR=str(tmp_path / "sites")) as fleet:
        yield fleet


def test_a_node_answers_while_it_crawls(fleet: ToyFleet) -> None:
    node = fleet.node()
    task_id = fleet.ask("run_crawler.delay('toy', 0).id")
    (crawler,) = fleet.wait_whole("toy/0").values()

    held, full, service, forums, site = json.loads(fleet.run(FIVE_ANSWERS))
    assert (held, full) == ("held", "full")
    assert "unknown service 'nix': there are toy, toy_two" in service
    assert "ConfigError: forums = 'f1'" in forums
    assert "unknown site 'nowhere'" in site
    told = {"a@test", "trawl.refresh_posts", "trawl.seed_forums", "trawl.scale_fleet"}
    # Celery gives a failed task's result away before it says to anybody else that the task has failed.
    wait_until(lambda: {error.where for error in fleet.registry.errors()} >= told, lambda: f"{fleet.registry.errors()} are told")
    errors = {error.where: error.what for error in fleet.registry.errors()}
    assert set(errors) == told
    assert "no place for toy_two/0: this node hosts 1 crawlers" in errors["a@test"]
    assert "Traceback" not in node.said()

    fleet.redis.client().rpush(CrawlKeys.for_spider("toy").item_stream(), json.dumps(POST))
    stored = fleet.ask("store_items.apply_async(ignore_result=False).get(timeout=60)['toy']")
    assert "'items': 1" in stored
    with sqlite3.connect(fleet.folder / "data" / "trawl.sqlite") as database:
        assert database.execute("select id, title from posts").fetchall() == [("p1", "A title")]
    database.close()

    said = fleet.run(FIRST_CRAWLING_EVENT)
    assert said.startswith("trawl.run_crawler ('toy', 0) running, ")
    assert said.endswith(f"pid {crawler.pid}")

    # As Flower's button Terminate does it: the crawler ends gracefully, the slot is free.
    fleet.ask(f"app.control.revoke({task_id!r}, terminate=True)")
    wait_until(lambda: not fleet.processes(), fleet.said)
    wait_until(lambda: fleet.registry.slots({"toy": 1}, [])[0].token is None, "the slot is free")
    assert "Spider closed (shutdown)" in (fleet.folder / "data" / "logs" / "toy-0.log").read_text()


def test_a_worker_without_options_starts_without_a_warning(fleet: ToyFleet) -> None:
    node = fleet.node()
    wait_until(Nodes(fleet.redis.client()).all, fleet.said, 60)  # a node is a place for crawlers from its first beat on
    assert fleet.ask("reconcile_fleet.apply_async(ignore_result=False).get(timeout=60)") == "['launch toy/0 on a@test']"
    banner, _, after = node.said().partition("node.a@test")
    assert ".> concurrency: 6 (prefork)" in banner
    assert not after.partition("\n")[2].strip(), after


FAILED_EVENT = """
from tasks import app, run_crawler
sent = []
def send(event):
    sent or sent.append(run_crawler.delay("nix", 0))
def show(event):
    print(event["exception"])
    raise SystemExit
with app.connection() as connection:
    handlers = {"worker-heartbeat": send, "task-failed": show}  # the first one tells that events arrive
    app.events.Receiver(connection, handlers=handlers).capture(limit=None, timeout=60)
"""


def test_a_slot_that_is_given_up_is_a_failed_task_in_flower_and_told_by_trawl_status(tmp_path: Path) -> None:
    with ToyFleet(tmp_path, "nix=1") as fleet:
        fleet.node()
        said = fleet.run(FAILED_EVENT)
        assert "nix/0 is refused: refused; trawl: nix: unknown spider 'nix'; there are toy, toy_two" in said
        status = fleet.run("from cli.main import main; main(['status'])")
        assert "nix/0 is refused: refused" in status
        assert "unknown spider 'nix'" in status
        assert "trawl resume nix" in status
