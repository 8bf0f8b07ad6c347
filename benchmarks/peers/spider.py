"""The forum as one spider, for every peer the same code: list pages → posts → comments. Only the base class differs."""

from __future__ import annotations

import json
import os
from typing import Any

import scrapy

FORUM = os.environ.get("BENCH_FORUM", "")
PEER = os.environ.get("BENCH_PEER", "vanilla")

if PEER == "trawl":
    from redis_components.spiders import RedisSpider as Base
elif PEER == "scrapy-redis":
    from scrapy_redis.spiders import RedisSpider as Base
else:
    Base = scrapy.Spider


class BenchSpider(Base):  # type: ignore[misc, valid-type]
    """Every thread of every forum, once."""

    name = "bench"
    start_urls = [] if PEER != "vanilla" else [f"{FORUM}/list/f{number}/1" for number in range(1, 5)]

    def parse(self, response: Any) -> Any:
        """A list page."""
        page = json.loads(response.body)
        for thread in page["threads"]:
            yield scrapy.Request(f"{FORUM}/post/{thread['id']}", callback=self.parse_post)
        if page["page"] < page["pages"]:
            yield scrapy.Request(f"{FORUM}/list/{page['forum_id']}/{page['page'] + 1}", priority=10)

    def parse_post(self, response: Any) -> Any:
        """A post."""
        post = json.loads(response.body)
        yield {"kind": "post", **post, "url": response.url}
        yield scrapy.Request(f"{FORUM}/comment/{post['id']}/1", callback=self.parse_comments)

    def parse_comments(self, response: Any) -> Any:
        """A page of comments."""
        page = json.loads(response.body)
        yield {"kind": "comments", "post": page["post_id"], "comments": page["comments"]}
        if page["page"] == 1:
            for number in range(2, page["pages"] + 1):
                yield scrapy.Request(f"{FORUM}/comment/{page['post_id']}/{number}", callback=self.parse_comments)
