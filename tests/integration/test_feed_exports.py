"""Scrapy's feed exports beside the item stream: what a spider of Trawl yields can be written as any other item."""

from __future__ import annotations

import csv
import json
import os
import subprocess
from pathlib import Path

import redis

from demo.forum.process import ForumProcess
from forums.records.stored import Comment, Post, PostTask
from forums.records.tasks_and_items import encode
from forums.storage import parse
from redis_components.keys import CrawlKeys
from tests.support import warm_start
from tests.support.scrapy_command import crawl_command

ROOT = Path(__file__).parents[2]
DETAILS = CrawlKeys.for_spider("forum_detail")


def test_feeds_have_the_items_of_the_stream(redis_url: str, redis_client: redis.Redis, tmp_path: Path) -> None:
    feeds = {
        str(tmp_path / "all.jsonl"): {"format": "jsonlines"},
        str(tmp_path / "all.csv"): {"format": "csv", "fields": ["kind", "id"]},
    }
    settings = ["-s", "MAX_IDLE_TIME_BEFORE_CLOSE=1", "-s", f"FEEDS={json.dumps(feeds)}"]
    with ForumProcess(seed=3, forums=1, threads=5, comments=4) as forum:
        for thread in forum.truth()["posts"]:
            redis_client.rpush(DETAILS.start_tasks(), encode(PostTask(site="demo", post=thread, forum="f1")))
        ended = warm_start.run(
            crawl_command("forum_detail", *settings),
            cwd=ROOT,
            env=os.environ
            | {"TRAWL_REDIS_URL": redis_url, "TRAWL_DEMO_URL": forum.url, "TRAWL_SITES_DIR": str(ROOT / "demo" / "sites")},
            stderr=subprocess.PIPE,
            timeout=90,
            check=False,
        )
        truth = forum.truth()
    assert ended.returncode == 0, ended.stderr.decode()
    written = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    stream = [json.loads(item) for item in redis_client.lrange(DETAILS.item_stream(), 0, -1)]
    assert sorted(map(str, written)) == sorted(map(str, stream))
    parsed = [parse(json.dumps(item).encode()) for item in written]
    assert {item.id for item in parsed if isinstance(item, Post)} == set(truth["posts"])
    assert {item.id for item in parsed if isinstance(item, Comment)} == set(truth["comments"])
    with (tmp_path / "all.csv").open(newline="") as file:
        assert sorted((row["kind"], row["id"]) for row in csv.DictReader(file)) == sorted((i["kind"], i["id"]) for i in written)
