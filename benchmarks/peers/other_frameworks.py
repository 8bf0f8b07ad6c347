"""One measured process of a framework that is not Scrapy: `python other_frameworks.py JOB_FILE`, in its own environment.

It imports nothing of Trawl. The crawled site is a tree: page n leads to 2n and 2n+1. Each page that a callback has handled is a
line in the file `handled`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

Job = dict[str, Any]


def children(url: str, job: Job) -> list[str]:
    """Note a page as handled; return the pages that it leads to."""
    with Path(job["handled"]).open("ab", buffering=0) as handled:
        handled.write(f"{url}\n".encode())
    number = int(url.rpartition("/")[2])
    return [f"{job['site']}/{child}" for child in (2 * number, 2 * number + 1) if child <= job["pages"]]


def seeds(job: Job) -> list[str]:
    """Return the first page; to fill a queue, as many addresses as it shall hold; none to wait for work."""
    if job["mode"] == "fill":
        return [f"https://forum.example/boards/b{n % 40:02}/threads/t{n:07}?page={n % 9 + 1}" for n in range(job["pages"])]
    return [f"{job['site']}/1"] if job["mode"] == "crawl" else []


def feapder(job: Job) -> None:
    """Crawl with feapder's distributed Spider, 32 threads. Lost requests are done again after 10 s; its default is 600 s."""
    import feapder as framework  # type: ignore[import-not-found]

    redis = urlsplit(job["redis_url"])

    class TreeSpider(framework.Spider):  # type: ignore[misc]
        """The tree."""

        __custom_setting__ = {  # noqa: RUF012 - the framework's
            "REDISDB_IP_PORTS": f"{redis.hostname}:{redis.port}",
            "REDISDB_USER_PASS": redis.password,
            "SPIDER_THREAD_COUNT": 32,
            "REQUEST_LOST_TIMEOUT": 10,
            "KEEP_ALIVE": job["mode"] == "rest",
            "ITEM_PIPELINES": [],
            "PROXY_ENABLE": False,
            "LOG_LEVEL": "ERROR",
        }

        def start_requests(self) -> Any:
            for url in seeds(job):
                yield framework.Request(url)

        def parse(self, request: Any, response: Any) -> Any:  # noqa: ARG002
            for url in children(request.url, job):
                yield framework.Request(url)

    spider = TreeSpider(redis_key="bench")
    if job["mode"] == "fill":
        spider.start_monitor_task()
        os._exit(0)  # its threads wait for ever
    spider.start()
    spider.join()


def crawlee(job: Job, *, sql: bool = False) -> None:
    """Crawl with Crawlee, 32 requests at a time: on its default storage (files), or on one that processes can share (SQLite)."""
    from crawlee import ConcurrencySettings  # type: ignore[import-not-found]
    from crawlee.configuration import Configuration  # type: ignore[import-not-found]
    from crawlee.crawlers import HttpCrawler  # type: ignore[import-not-found]
    from crawlee.storage_clients import FileSystemStorageClient, SqlStorageClient  # type: ignore[import-not-found]

    async def run() -> None:
        url = f"sqlite+aiosqlite:///{job['folder']}/crawlee.db"
        crawler = HttpCrawler(
            configuration=Configuration(storage_dir=job["folder"], purge_on_start=False, log_level="ERROR"),
            storage_client=SqlStorageClient(connection_string=url) if sql else FileSystemStorageClient(),
            concurrency_settings=ConcurrencySettings(min_concurrency=32, desired_concurrency=32, max_concurrency=32),
            keep_alive=job["mode"] == "rest",
            configure_logging=False,
        )

        @crawler.router.default_handler  # type: ignore[untyped-decorator]
        async def handle(context: Any) -> None:
            await context.push_data({"url": context.request.url})
            await context.add_requests(children(context.request.url, job))

        if job["mode"] == "fill":
            await (await crawler.get_request_manager()).add_requests(seeds(job), wait_for_all_requests_to_be_added=True)
            return
        await crawler.run(seeds(job))

    asyncio.run(run())


FRAMEWORKS: dict[str, Callable[[Job], None]] = {
    "feapder": feapder,
    "crawlee": crawlee,
    "crawlee, shared": lambda job: crawlee(job, sql=True),
}

if __name__ == "__main__":
    chosen = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    FRAMEWORKS[chosen["peer"]](chosen)
