"""A forum's lists, posts and comments, page after page: written for scrapy-redis, without a line about Trawl."""

import json
import os

import scrapy

from redis_components.spiders import RedisSpider

SITE = os.environ["COLLECTOR_SITE"]


class BBSCollector(RedisSpider):
    name = "BBSCollector-scrapy-redis"
    redis_key = "BBSCollector.taskqueue"
    redis_batch_size = 3

    custom_settings = {
        "REDIS_PARAMS": {
            "host": os.environ["COLLECTOR_REDIS_HOST"],
            "port": int(os.environ["COLLECTOR_REDIS_PORT"]),
            "db": 0,
            "password": os.environ["COLLECTOR_REDIS_PASSWORD"],
        },
        "SCHEDULER": "redis_components.scheduler.Scheduler",
        "SCHEDULER_PERSIST": True,
        "SCHEDULER_QUEUE_CLASS": "redis_components.queue.PriorityQueue",
        "DUPEFILTER_CLASS": "redis_components.dupefilter.RFPDupeFilter",
        "STATS_CLASS": "redis_components.stats.RedisStatsCollector",
    }

    def make_request_from_data(self, data):
        task = json.loads(data)
        yield self.list_page(task["forum_id"], 1, task.get("max_page", 5))

    def list_page(self, forum_id, page, max_page):
        return scrapy.Request(
            f"{SITE}/list/{forum_id}/{page}",
            callback=self.collect_post_meta,
            errback=self.collect_error,
            meta={"forum_id": forum_id, "page": page, "max_page": max_page},
            dont_filter=True,
        )

    def collect_post_meta(self, response):
        forum_id, page, max_page = (response.meta[name] for name in ("forum_id", "page", "max_page"))
        found = response.json()
        for post_id in found["posts"]:
            yield scrapy.Request(
                f"{SITE}/post/{post_id}", self.collect_post, errback=self.collect_error, cb_kwargs={"forum_id": forum_id}
            )
        if found["more"] and page < max_page:
            yield self.list_page(forum_id, page + 1, max_page)

    def collect_post(self, response, forum_id):
        post = response.json()
        yield {"kind": "post", "id": post["id"], "forum_id": forum_id, "title": post["title"]}
        if post["comments"]:
            yield self.comment_page(post["id"], 1)

    def comment_page(self, post_id, page):
        return scrapy.Request(
            f"{SITE}/comment/{post_id}/{page}",
            callback=self.collect_comments,
            errback=self.collect_error,
            cb_kwargs={"post_id": post_id, "page": page},
        )

    def collect_comments(self, response, post_id, page):
        found = response.json()
        for comment in found["comments"]:
            yield {"kind": "comment", "id": comment["id"], "post_id": post_id, "text": comment["text"]}
        if found["more"]:
            yield self.comment_page(post_id, page + 1)

    def collect_error(self, failure):
        self.logger.error("%s", failure)
