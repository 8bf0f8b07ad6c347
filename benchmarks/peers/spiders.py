"""The measured spiders, for every peer the same code: only the base class differs, and where start URLs come from."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any, ClassVar

from scrapy import Request, Spider

from .job import Job
from .other_frameworks import children


class Forum:
    """The demo forum: list pages → posts → comments, every thread once."""

    job: ClassVar[Job]

    def parse(self, response: Any) -> Iterator[Any]:
        """Parse a list page."""
        page = json.loads(response.body)
        for thread in page["threads"]:
            yield Request(f"{self.job.site}/post/{thread['id']}", callback=self.parse_post)
        if page["page"] < page["pages"]:
            yield Request(f"{self.job.site}/list/{page['forum_id']}/{page['page'] + 1}", priority=10)

    def parse_post(self, response: Any) -> Iterator[Any]:
        """Parse a post."""
        post = json.loads(response.body)
        yield {"kind": "post", **post, "url": response.url}
        yield Request(f"{self.job.site}/comment/{post['id']}/1", callback=self.parse_comments)

    def parse_comments(self, response: Any) -> Iterator[Any]:
        """Parse a page of comments."""
        page = json.loads(response.body)
        yield {"kind": "comments", "post": page["post_id"], "comments": page["comments"]}
        if page["page"] == 1:
            for number in range(2, page["pages"] + 1):
                yield Request(f"{self.job.site}/comment/{page['post_id']}/{number}", callback=self.parse_comments)


class Chains:
    """`chains` chains of `steps` pages: each page is known only when the one before it was read."""

    job: ClassVar[Job]

    def parse(self, response: Any) -> Iterator[Any]:
        """Parse the page from which all chains begin."""
        yield {"url": response.url}
        for chain in range(self.job.options["chains"]):
            yield self._step(chain, 1)

    def parse_step(self, response: Any) -> Iterator[Any]:
        """One page of a chain."""
        chain, step = map(int, response.url.rpartition("/")[2].split("-"))
        yield {"url": response.url}
        if step < self.job.options["steps"]:
            yield self._step(chain, step + 1)

    def _step(self, chain: int, step: int) -> Request:
        return Request(f"{self.job.site}/{self.job.options['page_ms']:g}/{chain}-{step}", callback=self.parse_step)


class Tree:
    """`pages` pages; page n leads to 2n and 2n+1."""

    job: ClassVar[Job]

    def parse(self, response: Any) -> Iterator[Any]:
        """Any page."""
        number = int(response.url.rpartition("/")[2])
        yield {"url": response.url}
        for child in (2 * number, 2 * number + 1):
            if child <= self.job.options["pages"]:
                yield Request(f"{self.job.site}/{self.job.options['page_ms']:g}/{child}")


class Tasks:
    """Every page is a start task."""

    def parse(self, response: Any) -> Iterator[Any]:
        """Any page."""
        yield {"url": response.url}


class Fill:
    """Finds `requests` pages on the first one and fetches none of them: they stay in the queue.

    CloseSpider would cut the first page off, which Trawl then puts back among them; so the engine stays paused and closes once
    that page is done.
    """

    job: ClassVar[Job]
    crawler: Any

    def parse(self, response: Any) -> Iterator[Any]:  # noqa: ARG002
        """Parse the page that links to all."""
        self.crawler.engine.pause()
        for number in range(self.job.options["requests"]):
            forum, thread = number % 40, number // 40
            yield Request(
                f"https://forum.example/boards/b{forum:02}/threads/t{thread:07}?page={number % 9 + 1}",
                callback=self.parse_thread,
                meta={"forum": f"b{forum:02}", "page": number % 9 + 1},
                priority=10 * (number % 3),
            )
        closing = self.crawler.engine.close_spider_async(reason="filled")
        self._closing = asyncio.ensure_future(closing)  # the loop itself keeps no reference

    def parse_thread(self, response: Any) -> None:
        """Never called; a stored callback has to exist."""


class Links:
    """Follows each link of the first page, with its text as `meta`, `cb_kwargs` and a header: whatever a page can put there."""

    job: ClassVar[Job]

    def parse(self, response: Any) -> Iterator[Any]:
        """Parse the page with the links."""
        for link in response.css("a::attr(href)").getall():
            yield Request(
                response.urljoin(link),
                callback=self.parse_page,
                meta={"link": link},
                cb_kwargs={"link": link},
                headers={"X-Link": link.encode()},
            )

    def parse_page(self, response: Any, link: str) -> Iterator[Any]:
        """Parse what a link led to."""
        yield {"url": response.url, "link": link}


class DeepChain:
    """One chain of `steps` pages, found on the first page amid `shallow` pages without links."""

    job: ClassVar[Job]

    def parse(self, response: Any) -> Iterator[Any]:
        """Parse the first page."""
        yield {"url": response.url}
        for number in range(shallow := self.job.options["shallow"]):
            if number == shallow // 4:
                yield self._step(1)
            yield Request(f"{self.job.site}/shallow-{number}", callback=self.parse_shallow)

    def parse_step(self, response: Any, step: int) -> Iterator[Any]:
        """Parse one page of the chain."""
        yield {"url": response.url}
        if step < self.job.options["steps"]:
            yield self._step(step + 1)

    def parse_shallow(self, response: Any) -> Iterator[Any]:
        """Parse a page that leads nowhere."""
        yield {"url": response.url}

    def _step(self, step: int) -> Request:
        return Request(f"{self.job.site}/deep-{step}", callback=self.parse_step, cb_kwargs={"step": step})


class Board:
    """A board of `lists` list pages with `threads` threads each, of `pages` pages each: as chains, where each page leads to the
    next, or as trees, where the first page leads to all others. No dupefilter: what grows in Redis is the queue.
    """

    job: ClassVar[Job]

    def parse(self, response: Any) -> Iterator[Any]:
        """Parse a list page, `/list-NUMBER`."""
        number, walk = int(response.url.rpartition("-")[2]), self.job.options["list_walk"]
        threads = self.job.options["threads"]
        for thread in range((number - 1) * threads, number * threads):
            yield self._request(f"thread-{thread}-1", self.parse_thread)
        for following in self._following(number, self.job.options["lists"], walk):
            yield self._request(f"list-{following}", self.parse, priority=1 if walk == "chain, first" else 0)

    def parse_thread(self, response: Any) -> Iterator[Any]:
        """Parse a page of a thread, `/thread-THREAD-NUMBER`."""
        _, thread, number = response.url.rpartition("/")[2].split("-")
        for following in self._following(int(number), self.job.options["pages"], self.job.options["thread_walk"]):
            yield self._request(f"thread-{thread}-{following}", self.parse_thread)

    def _following(self, number: int, last: int, walk: str) -> range:
        if walk == "tree":
            return range(2, last + 1) if number == 1 else range(0)
        return range(number + 1, min(number + 1, last) + 1)

    def _request(self, path: str, callback: Any, priority: int = 0) -> Request:
        return Request(f"{self.job.site}/{path}", callback=callback, dont_filter=True, priority=priority)


class Pages:
    """The tree of `tests/support/link_site.py`, as the frameworks that are not Scrapy crawl it."""

    job: ClassVar[Job]

    def parse(self, response: Any) -> Iterator[Any]:
        """Parse any page."""
        yield {"url": response.url}
        for url in children(response.url, {**self.job.options, "site": self.job.site}):
            yield Request(url)


SPIDERS: dict[str, type] = {
    "forum": Forum,
    "chains": Chains,
    "tree": Tree,
    "tasks": Tasks,
    "fill": Fill,
    "links": Links,
    "deep_chain": DeepChain,
    "board": Board,
    "pages": Pages,
}


def spider_class(job: Job) -> type[Spider]:
    """Return the spider of `job` on the base class of its peer."""
    return type(
        "BenchSpider", (SPIDERS[job.spider], _base(job.peer)), {"name": "bench", "job": job, "start_urls": list(job.urls)}
    )


def _base(peer: str) -> type[Spider]:
    if peer == "trawl":
        from redis_components.spiders import RedisSpider

        return RedisSpider
    if peer.startswith("scrapy-redis"):
        return _scrapy_redis_base()
    return Spider


def _scrapy_redis_base() -> type[Spider]:
    from scrapy_redis.spiders import RedisSpider  # type: ignore[import-not-found]

    class StartedSpider(RedisSpider):  # type: ignore[misc]
        """scrapy-redis 0.9.1 reads its first batch in `start_requests()`, which Scrapy calls no more since 2.16.

        This calls the package's own method for it from the method that Scrapy calls now, and changes nothing else; the later
        batches it reads when the spider is idle, as it always did.
        """

        async def start(self) -> AsyncIterator[Any]:
            for request in self.next_requests():
                yield request

    return StartedSpider
