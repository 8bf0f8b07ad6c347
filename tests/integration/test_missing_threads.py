"""A site file whose thread URL is wrong, and one whose comment URL is: the breaker says so, and the mended file brings all in."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from demo.compare import compare
from demo.forum.process import ForumProcess
from forums.scheduling.seeding import SEEDED, seed
from forums.storage import Database
from forums.writer.store import store
from redis_components.keys import CrawlKeys
from tests.integration.test_site_breaker import BREAKER, SPIDERS, crawlers, items_of, sites
from tests.support.demo_sites import declare
from tests.support.processes import wait_until
from workers.breaker import probe_sites
from workers.state.holds import Breakers

__all__ = ["sites"]

LISTS = CrawlKeys.for_spider("forum_list")


@pytest.mark.parametrize(
    ("kind", "right", "wrong"), [("thread", "/post/{thread}", "/nopost/{thread}"), ("comments", "/comment/", "/nocomment/")]
)
def test_where_every_page_is_404_the_breaker_opens_and_the_mended_file_brings_in_all(
    kind: str,
    right: str,
    wrong: str,
    sites: Path,
    redis_url: str,
    redis_client: redis.Redis,
) -> None:
    with ForumProcess(seed=3, forums=4, threads=8, comments=3, rate=0) as forum:
        path = declare(sites, "half", forum.url, BREAKER)
        text = path.read_text()
        path.write_text(text.replace(right, wrong))
        with crawlers(redis_url, sites.parent) as said:
            assert set(seed(redis_client).values()) == {SEEDED}
            breakers = Breakers(redis_client)
            wait_until(breakers.open_ones, lambda: f"the breaker opens: {said()}", 60)
            opened = breakers.open_ones()["half"]
            assert (opened.cause, opened.kind) == ("drift", kind)
            assert f"every {kind} page is missing (HTTP 404)" in opened.reason
            assert f"[pages.{kind}] url" in opened.reason
            wait_until(lambda: probe_sites(redis_client).get("half") == "open: HTTP 404", "a probe finds the same", 60)
            checks = [
                item
                for item in items_of(redis_client, "half")
                if item["kind"] == "check" and (item["gone"] or item["reply_count"])
            ]
            assert len(checks) <= 1, "one missing page may be a removed thread; what follows it is doubted"
            path.write_text(text)
            seen: list[str] = []

            def closed() -> bool:
                seen.extend(probe_sites(redis_client).values())
                return not breakers.open_ones()

            wait_until(closed, lambda: f"probes close it: {seen}", 60)
            store(redis_client, SPIDERS)
            seed(redis_client, force=True)

            def all_there() -> bool:
                store(redis_client, SPIDERS)
                with Database.from_url().open() as database:
                    return all(one.complete for one in compare(database, forum.truth(), "half"))

            wait_until(all_there, lambda: f"all of it is stored: {said()}", 60, every_s=0.5)

            def scanned() -> bool:
                store(redis_client, SPIDERS)
                return redis_client.hlen(LISTS.pending()) == 0

            def counted(stat: str) -> int:
                return int(redis_client.hget(LISTS.stats, stat) or 0)

            wait_until(scanned, lambda: f"the scans are stored: {said()}", 60, every_s=0.5)
            # Stats arrive with a later exchange than the items: four lists were read when they were seeded, and once more then.
            wait_until(lambda: counted("sites/half/list/read") >= 8, lambda: f"eight lists are counted: {said()}", 60)
            read, same = counted("sites/half/list/read"), counted("conditional/same_body")
            assert set(seed(redis_client, force=True).values()) == {SEEDED}
            wait_until(scanned, lambda: f"the next ones, too: {said()}", 60, every_s=0.5)
            wait_until(lambda: counted("conditional/same_body") == same + 4, "four lists have not changed", 60)
            assert counted("sites/half/list/read") == read, "and are not read"
