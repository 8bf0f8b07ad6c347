"""Small crawls inside a worker: one after the other in one process, side by side, cut off, and what cannot be."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import warm_start
from tests.support.fleet import ROOT, ToyFleet, toy_environment
from workers.node.crawl_once import OnceOrder

pytestmark = pytest.mark.usefixtures("no_process_left")

ONE_AFTER_THE_OTHER = """
import json, os, time
from pathlib import Path
from tasks import app, crawl_once
LOG = Path(os.environ["TRAWL_TEST_FLEET"], "a-0.log")
def send(mode, **more):
    return crawl_once.apply_async(("toy", {"mode": mode}), more, queue="once")
opened = lambda: LOG.read_text().count("Spider opened")
def running():
    before, deadline = opened(), time.monotonic() + 60
    sent = send("crawl")
    while opened() == before:
        assert time.monotonic() < deadline, sent.state
        time.sleep(0.05)
    return sent
said = {"first": send("finish", items=5).get(timeout=60), "second": send("finish").get(timeout=60)}
said["error"] = send("raise").get(timeout=60)
said["timeout"] = send("crawl", timeout=8, settings={"CONCURRENT_REQUESTS": 2}).get(timeout=60)
sent = running()
app.control.revoke(sent.id, terminate=True)
try:
    sent.get(timeout=60)
except Exception as error:
    said["revoked"] = type(error).__name__
said["after all"] = send("finish").get(timeout=60)
running()
print(json.dumps(said))
"""

SIDE_BY_SIDE = """
import json
import subprocess
from tasks import crawl_once
sent = [crawl_once.apply_async(("toy", {"mode": "crawl"}), {"timeout": 8}, queue="once") for _ in range(3)]
print(json.dumps([one.get(timeout=60)["outcome"] for one in sent]))
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ToyFleet]:
    with ToyFleet(tmp_path, "toy=1", TRAWL_NODE_CRAWLERS="1", TRAWL_SITES_DIR=str(tmp_path / "sites")) as fleet:
        yield fleet


def test_one_process_crawls_as_often_as_wanted_and_every_crawl_can_be_ended(fleet: ToyFleet) -> None:
    node = fleet.node("a", "-Q", "once", "--concurrency=1", "--loglevel=INFO")
    said: dict[str, Any] = json.loads(fleet.run(ONE_AFTER_THE_OTHER, timeout_s=200))

    first = said["first"]
    assert (first["outcome"], first["pages"], first["items"], first["kept"]) == ("finished", 1, 1, [{"page": "data:,one"}])
    assert "T" in first["stats"]["finish_time"]
    assert (said["second"]["outcome"], said["second"]["kept"]) == ("finished", [])
    assert (said["error"]["outcome"], said["error"]["error"]) == ("crashed", "runtime error: this spider cannot be made")
    assert (said["timeout"]["outcome"], said["timeout"]["reason"]) == ("timeout", "shutdown")
    assert said["timeout"]["pages"] > 0
    assert said["revoked"] == "TaskRevokedError"
    assert said["after all"]["outcome"] == "finished"

    # The worker's end is the end of its crawl, too.
    node.process.terminate()
    assert node.wait(60) == 0
    assert node.said().count("Spider closed (shutdown)") == 3, "whoever ended a crawl, it was closed"


def test_a_worker_of_threads_crawls_several_at_once_on_one_reactor(fleet: ToyFleet) -> None:
    node = fleet.node("a", "-Q", "once", "--pool=threads", "--concurrency=3", "--loglevel=INFO")
    assert json.loads(fleet.run(SIDE_BY_SIDE, timeout_s=200)) == ["timeout"] * 3
    opened, closed = (node.said().index(words) for words in ("Spider opened", "Spider closed"))
    assert node.said()[opened:closed].count("Spider opened") == 3

    node.process.terminate()
    assert node.wait(60) == 0


def run(script: str, tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A Python script in the toy project, without Redis."""
    return warm_start.run(
        [sys.executable, "-c", script],
        family="celery",
        cwd=ROOT,
        env={**toy_environment("redis://127.0.0.1:1", tmp_path), "TRAWL_SITES_DIR": str(tmp_path), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


MANY = """
import gc, logging, os, threading
import psutil
from workers.node.crawl_once import OnceOrder, crawl_once
def look():
    gc.collect()
    return psutil.Process().memory_info().rss, threading.active_count(), len(logging.root.handlers), psutil.Process().num_fds()
for n in range(28):
    if n == 8:
        before = look()
    crawl_once(OnceOrder(spider="toy", arguments={"mode": ("finish", "finish", "start-error", "raise")[n % 4]}, items=5))
after = look()
print((after[0] - before[0]) // 1024, *(a - b for a, b in zip(after[1:], before[1:])), flush=True)
os._exit(0)
"""


def test_a_process_does_not_grow_with_its_crawls(tmp_path: Path) -> None:
    kilobytes, *others = map(int, run(MANY, tmp_path).stdout.split())
    assert kilobytes < 4000  # 200 crawls took 2 MB
    assert others == [0, 0, 0]  # threads, log handlers, descriptors


HANGS = """
import os
from workers.node import crawl_once as once
once.SILENCE_S = 10.0
try:
    once.crawl_once(once.OnceOrder(spider="toy", arguments={"mode": "hang"}))
except once.ReactorHung as error:
    print(error, flush=True)
os._exit(0)
"""


def test_a_crawl_that_blocks_the_reactor_is_noticed_and_named(tmp_path: Path) -> None:
    done = run(HANGS, tmp_path)
    assert done.stdout == "the reactor has not answered for 10 s: a callback blocks it\n"
    assert done.stderr.count("tests/support/toy/spiders.py") == 1


CLOSED = """
from workers.node.crawl_once import OnceOrder, crawl_once
done = crawl_once(OnceOrder(spider="toy", arguments={"mode": "fetch", "url": "file:///proc/self/environ"}, items=1))
print(done.kept, done.stats["downloader/exception_type_count/workers.crawler.doors.ClosedDoor"], flush=True)
import os
os._exit(0)
"""


def test_a_small_crawl_reads_no_file(tmp_path: Path) -> None:
    assert run(CLOSED, tmp_path).stdout == "[] 1\n"


PLAIN = """
import json
from pathlib import Path
from workers.node.crawl_once import _within
print(json.dumps(list(_within(1000, [{"a": 1}, {"b": Path("x")}, {("c", 1): 2}, {"d": [1.5]}]))))
"""


def test_an_item_that_json_does_not_have_is_kept_as_text_and_the_others_as_they_are(tmp_path: Path) -> None:
    kept = json.loads(run(PLAIN, tmp_path).stdout)
    assert kept == [{"a": 1}, "{'b': PosixPath('x')}", "{('c', 1): 2}", {"d": [1.5]}]


FED = """
from redis_components.errors import ConfigError
from workers.node.crawl_once import OnceOrder, crawl_once
for spider in ("forum_detail", "nix"):
    try:
        crawl_once(OnceOrder(spider=spider))
    except ConfigError as error:
        print(error)
"""


def test_a_spider_that_is_fed_from_redis_and_one_that_there_is_not_are_refused(tmp_path: Path) -> None:
    fed, unknown = run(FED, tmp_path, SCRAPY_SETTINGS_MODULE="workers.settings").stdout.splitlines()
    assert fed.startswith("forum_detail is fed from Redis and has no start requests")
    assert "unknown spider 'nix'; there are forum_detail, forum_list" in unknown


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"spider": 5}, "spider = 5"),
        ({"arguments": ["x"]}, "arguments"),
        ({"arguments": {1: "x"}}, "arguments"),
        ({"settings": "x"}, "settings"),
        ({"settings": {"FEEDS": {"/etc/passwd": {}}, "DOWNLOAD_DELAY": 1}}, "FEEDS: cannot be set by a task"),
        ({"timeout_s": 0}, "timeout = 0"),
        ({"timeout_s": 4000}, "at most 3600"),
        ({"timeout_s": True}, "timeout = True"),
        ({"items": 1001}, "items = 1001"),
        ({"items": 1.5}, "items = 1.5"),
    ],
)
def test_an_order_that_cannot_be_is_refused_by_the_name_of_what_is_wrong(wrong: dict[str, Any], said: str) -> None:
    from redis_components.errors import ConfigError

    with pytest.raises(ConfigError, match=said):
        OnceOrder(**{"spider": "toy", **wrong})
