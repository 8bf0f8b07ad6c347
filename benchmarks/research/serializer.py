"""Code in a queue: does a page's URL, or a writer of Redis, make the request serializer run code?

The payload is a pickle that makes an empty file, the marker, when it is loaded. It is tried in two places: as an address on a
page of the crawled site, in several spellings, and as an entry that another client of Redis writes into the queue of requests.
"""

from __future__ import annotations

import base64
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote_from_bytes

import redis

from benchmarks.peers.job import Job
from benchmarks.support.peer import PeerProcess, scrapy_redis_peers, seed
from benchmarks.support.report import Report
from redis_components.keys import CrawlKeys
from tests.support.redis_server import RedisServer
from tests.support.watched_site import Page, WatchedSite


class MakesMarker:
    """Object whose pickle creates a file when it is loaded."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (str(self.marker), "w")


def run(*, small: bool) -> Report:
    """Try both doors with each peer. The small form leaves scrapy-redis out."""
    report = Report(title="Serializer", method=" ".join((__doc__ or "").split("\n\n", 1)[1].split()))
    peers = ("trawl", *scrapy_redis_peers(report, left_out=small)[:1])
    doors: dict[str, Callable[[redis.Redis, bytes, WatchedSite], None]] = {
        "an address on a page": in_a_page,
        "an entry of the queue": in_the_queue,
    }
    rows = [[peer, door, *attempt(peer, write)] for peer in peers for door, write in doors.items()]
    report.table(["peer", "payload stands in", "pages fetched", "code was run", "set aside"], rows)
    return report


def attempt(peer: str, write: Callable[[redis.Redis, bytes, WatchedSite], None]) -> list[object]:
    """Crawl once with the payload at one door; return pages, `yes` or `no`, and the number of refused entries."""
    with tempfile.TemporaryDirectory(prefix="trawl-research-") as folder, WatchedSite() as site, RedisServer() as server:
        marker, client = Path(folder) / "marker", server.client()
        site.pages["/"] = Page("<html><body>no link</body></html>")
        site.answer = lambda path: site.pages.get(path, Page("a page"))
        write(client, pickle.dumps(MakesMarker(marker)), site)
        seed(client, [f"{site.url}/"])
        with PeerProcess(Job(peer=peer, spider="links", site=site.url, redis_url=server.url)) as process:
            process.process.wait(timeout=120)
        keys = CrawlKeys.for_spider("bench")
        return [len(site.asked), "yes" if marker.exists() else "no", int(client.llen(keys.dead()))]


def in_a_page(_: redis.Redis, payload: bytes, site: WatchedSite) -> None:
    """Link to the payload: quoted, in base64, and as the bytes of a query."""
    spelled = (quote_from_bytes(payload), base64.urlsafe_b64encode(payload).decode(), f"?q={quote_from_bytes(payload)}")
    site.pages["/"] = Page("".join(f'<a href="/{one}">x</a>' for one in spelled))


def in_the_queue(client: redis.Redis, payload: bytes, _: WatchedSite) -> None:
    """Write the payload where each peer reads requests, as scrapy-redis stores one and as Trawl does."""
    framed = bytes(9) + payload  # order and attempts, then the payload
    client.zadd(CrawlKeys.for_spider("bench").ready(), {payload: 0, framed: 0})
