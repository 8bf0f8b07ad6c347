"""Start tasks in real crawls: all that they may say, several keys, and when a crawl is over."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import redis

from redis_components.admin.inspector import expire_owner, snapshot
from tests.support.crawl import crawl
from tests.support.processes import wait_until


def test_what_a_start_task_says_is_what_the_site_gets(redis_url: str, redis_client: redis.Redis, tmp_path: Path) -> None:
    with crawl(redis_url, tmp_path, pages=1, spider="rich") as run:
        echo = f"{run.site}/echo"
        form: dict[str, Any] = {
            "url": echo,
            "formdata": {"user": "ann", "tag": ["a", "b"]},
            "headers": {"X-Job": "7"},
            "cookies": {"session": "s1"},
            "callback": "parse_echo",
            "cb_kwargs": {"page": 1},
            "meta": {"job": [1, None]},
            "flags": ["f"],
            "priority": 3,
        }
        bad = [{"url": echo, "colour": "red"}, {"url": echo, "callback": "spider_idle"}, {"url": echo, "priority": "5"}]
        good = [form, {"url": echo, "json": {"a": [1]}}, {"url": echo, "formdata": {"q": "x"}, "method": "GET"}]
        failing = {"url": f"{run.site}/nowhere", "callback": "parse_echo", "errback": "failed"}
        run.seed(*map(json.dumps, (bad[0], good[0], bad[1], good[1], failing, bad[2], good[2])))
        assert run.start().wait(60) == 0, run.log()
        items = [json.loads(item) for item in redis_client.lrange(run.keys.item_stream(), 0, 99)]
        shot = snapshot(redis_client, "rich")
        reasons = [json.loads(one.partition(b"\n")[0])["reason"] for one in redis_client.lrange(run.keys.dead(), 0, 9)]
    assert len(items) == 4, run.log()
    answers = {item["by"] + item.get("method", "") + str(item.get("query")): item for item in items}
    posted = answers["parse_echoPOST{}"]
    assert (posted["body"], posted["cookies"], posted["headers"]["X-Job"]) == ("user=ann&tag=a&tag=b", {"session": "s1"}, ["7"])
    assert (posted["kwargs"], posted["meta"], posted["flags"]) == ({"page": 1}, {"job": [1, None]}, ["f"])
    assert json.loads(answers["parsePOST{}"]["body"]) == {"a": [1]}
    assert answers["parseGET{'q': 'x'}"]["body"] == ""
    assert answers["failedNone"]["url"].endswith("/nowhere")
    assert [reason.partition(";")[0] for reason in reasons] == [
        "unknown field 'colour'",
        "field 'callback': spider 'rich' has no method 'spider_idle' for it",
        "field 'priority': expected `int`, got `str`",
    ]
    assert (shot.start_tasks, shot.leased_tasks, shot.leased, shot.ready) == (0, 0, 0, 0)


def test_an_urgent_key_comes_first_and_a_kill_loses_no_task_of_either(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    later, urgent = range(8, 28), range(28, 32)  # their links lead beyond the last page
    with crawl(redis_url, tmp_path, pages=15, latency_s=0.5, spider="keys") as run:
        redis_client.rpush("keys:later", *(f"{run.site}/{page}" for page in later))
        first = run.start(CONCURRENT_REQUESTS=2)
        wait_until(lambda: len(run.hits()) >= 4, lambda: f"the crawl is under way\n{run.log()}", 60)
        redis_client.zadd("keys:urgent", {f"{run.site}/{page}": 1 for page in urgent})
        begun = len(run.hits())
        wait_until(lambda: run.hits().keys() & set(urgent), lambda: f"the urgent tasks are begun\n{run.log()}", 60)
        asked = list(run.hits())  # in the order in which the site saw them first
        assert min(asked.index(page) for page in urgent if page in asked) < begun + 12, "only what was leased before went first"
        first.send_signal(signal.SIGKILL)
        first.wait()
        for owner in redis_client.zrange(run.keys.owners(), 0, 9):
            expire_owner(redis_client, run.keys, owner.decode())
        assert run.start(CONCURRENT_REQUESTS=2).wait(60) == 0, run.log()
        assert sorted(set(run.items())) == [*later, *urgent]
        assert sum(run.hits().values()) <= len([*later, *urgent]) + 6, "only what was in flight is fetched twice"
    shot = snapshot(redis_client, "keys")
    assert (shot.leased_tasks, shot.leased, shot.ready, shot.dead) == (0, 0, 0, 0)
    assert redis_client.exists("keys:later", "keys:urgent", "keys:start_urls") == 0


def test_an_idle_crawler_stays_while_another_one_works(redis_url: str, redis_client: redis.Redis, tmp_path: Path) -> None:
    with crawl(redis_url, tmp_path, pages=3, spider="slow") as run:
        processes = [run.start(), run.start()]
        run.wait_for(2)
        run.seed()  # one of them computes for 5 s, five times the idle time, on the first page
        wait_until(lambda: any(one.poll() is not None for one in processes), lambda: f"one ends\n{run.log()}", 60)
        assert run.items() == [1, 2, 3]
        run.finish()
        assert run.hits() == dict.fromkeys(range(1, 4), 1)
        assert run.log().count("closing: the whole crawl was idle for 1 s") == 2
