"""Conditional requests: unchanged pages are answered with 304 and no body, by the validators of the last answer.

    DOWNLOADER_MIDDLEWARES = {"redis_components.scrapy_glue.conditional.ConditionalRequests": 940}
    CONDITIONAL_REQUESTS = True  # or meta["conditional"] = True of single requests

A page's validators are stored when its request is settled: its items and requests are stored then, so that no 304 ever stands
for a page that was lost with its crawler. A callback that finds a page to be an error sets `meta["conditional_forget"] = True`.

A callback gets the 304 where the spider has `handle_httpstatus_list = [304]`; else Scrapy leaves the page out, as every answer
that is not a page. A page that comes with the same body has `meta["unchanged"]`.

In Redis validators and digests of bodies are bounded: a number of pages of a crawl, in two generations; a page not asked for
while the other half was filled is forgotten.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import msgspec
import redis
from scrapy import Request, signals

from redis_components import connection
from redis_components.errors import ConfigError
from redis_components.keys import CrawlKeys
from redis_components.politeness.limits import http_date
from redis_components.server.scripts import script
from redis_components.setting_values import number_of

from .engine import ForCrawler, keys_of, known_frontier
from .internals import from_redis, in_background
from .page_tracker import tracker_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from redis_components.frontier.messages import Reply
    from redis_components.frontier.outbox import Batch


LONGEST = 256
"""Characters of a validator that is kept; a longer one is a site's mistake."""


class Validators(msgspec.Struct, frozen=True, array_like=True):
    """Of one page. "" is none."""

    etag: str = ""
    modified: str = ""
    digest: bytes = b""
    """Of the body: a site without validators may send the same page again."""

    @classmethod
    def of(cls, etag: str, modified: str, body: bytes) -> Validators:
        """Return the validators of an answer; too long ones, and others than printable ASCII, are left out."""
        return cls(_kept(etag), _kept(modified), hashlib.blake2b(body, digest_size=12).digest())


def _kept(text: str) -> str:
    return text if len(text) <= LONGEST and text.isascii() and text.isprintable() else ""


def name_of(url: str, tag: str) -> bytes:
    """Return the name under which the validators of a page are kept; `tag` differs where the page would be read otherwise."""
    return hashlib.blake2b(f"{tag}\n{url}".encode("utf-8", "surrogatepass"), digest_size=12).digest()


class ValidatorStore:
    """Its methods block, and raise `redis.RedisError`."""

    def __init__(self, client: redis.Redis, keys: CrawlKeys, most: int) -> None:
        self._client = client
        self._keys = keys
        self._most = most

    def look_up(self, name: bytes) -> Validators | None:
        """Return the validators of a page; None also for unreadable ones."""
        for key in (self._keys.validators(), self._keys.older_validators()):
            if (value := self._client.hget(key, name)) is not None:
                try:
                    return msgspec.msgpack.decode(value, type=Validators)  # type: ignore[arg-type]
                except msgspec.MsgspecError:
                    return None
        return None

    def store(self, found: Mapping[bytes, Validators]) -> None:
        """Store the validators of pages that are settled: all that was found on them is stored."""
        entries = [part for name, one in found.items() for part in (name, msgspec.msgpack.encode(one))]
        script("validators_store")(self._client, self._keys, {"most": self._most, "entries": entries})


MOST_URLS = 100_000
"""About 15 MB of Redis's memory."""
_ASKED = ("If-None-Match", "If-Modified-Since")


def is_unchanged(response: Response) -> bool:
    """Return True if a page is the same as when it was last settled."""
    return response.status == 304 or bool(response.meta.get("unchanged"))


def _header(response: Response, name: str) -> str:
    return (response.headers.get(name) or b"").decode("latin-1").strip()


def _modified(response: Response) -> str:
    """Return `Last-Modified`, where it is old enough to be sure: the page may change twice in a second (RFC 9110, 8.8.2.2)."""
    modified, date = http_date(_header(response, "Last-Modified")), http_date(_header(response, "Date"))
    return _header(response, "Last-Modified") if modified is not None and date is not None and date - modified >= 2 else ""


class ConditionalRequests(ForCrawler):
    """Innermost downloader middleware: no copy of a request, as a retry or a redirect is, has what it adds.

    `meta["conditional"]`: True, a text that is another one whenever the page would be read in another way, or False. With
    `meta["conditional_reload"]` the whole page is asked for, and remembered.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._by_default = crawler.settings.getbool("CONDITIONAL_REQUESTS")
        self._most = number_of(crawler.settings, "CONDITIONAL_MAX_URLS", MOST_URLS)
        if not 2 <= self._most <= 100_000_000:
            raise ConfigError(f"CONDITIONAL_MAX_URLS = {self._most} is out of range: from 2 to 100000000")
        self._store: ValidatorStore | None = None
        self._known: WeakKeyDictionary[Request, Validators] = WeakKeyDictionary()  # sent with the request
        self._found: WeakKeyDictionary[Request, Validators] = WeakKeyDictionary()  # of the answer
        self._at_work: dict[str, Request] = {}  # by lease
        self._owner = ""
        self._settled: dict[bytes, Validators] = {}
        self._storing = False
        crawler.signals.connect(self._listen, signals.spider_opened)
        crawler.signals.connect(self._received, signals.response_received)

    def _listen(self) -> None:
        if (frontier := known_frontier(self._crawler)) is not None:
            frontier.listeners.applied.append(self._applied)

    async def process_request(self, request: Request) -> None:
        """Add the validators of the page to the request."""
        request.meta.pop("unchanged", None)  # of an earlier answer
        name = self._name(request)
        if name is None or request.meta.get("conditional_reload") or any(header in request.headers for header in _ASKED):
            return
        known = await from_redis(lambda: self._validators().look_up(name))
        if known is None:
            return
        self._known[request] = known
        if known.etag:
            request.headers["If-None-Match"] = known.etag
        if known.modified:
            request.headers["If-Modified-Since"] = known.modified

    def process_response(self, request: Request, response: Response) -> Response:
        """Note the validators of the answer."""
        known = self._restored(request)
        if self._name(request) is None:
            return response
        if response.status == 304 and known is not None:
            self._count("conditional/unchanged")
            self._found[request] = known
        elif response.status == 200:
            self._found[request] = found = Validators.of(_header(response, "ETag"), _modified(response), response.body)
            if known is not None and known.digest == found.digest:
                request.meta["unchanged"] = True
                self._count("conditional/same_body")
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:  # noqa: ARG002 - so it is called
        """Restore the headers of a request that failed; when it is tried again, validators are added again."""
        self._restored(request)

    def _restored(self, request: Request) -> Validators | None:
        known = self._known.pop(request, None)
        if known is not None:
            for header in _ASKED:
                request.headers.pop(header, None)
        return known

    def _received(self, request: Request) -> None:
        """Note the request of an answer that no middleware has refused: it goes to its callback."""
        book = tracker_of(self._crawler) if request in self._found else None
        if book is not None and (page := book.own(request)) is not None and page.lease_id:
            self._at_work[page.lease_id] = request

    def _name(self, request: Request) -> bytes | None:
        wanted: Any = request.meta.get("conditional", self._by_default)
        if not wanted or request.method != "GET" or request.body:
            return None
        return name_of(request.url, wanted if isinstance(wanted, str) else "")

    def _applied(self, batch: Batch, reply: Reply) -> None:  # noqa: ARG002 - the listener's form
        """Store the validators of pages that an exchange has acked."""
        frontier = known_frontier(self._crawler)
        if frontier is not None and frontier.owner != self._owner:  # its leases are numbered from the start
            self._owner, former = frontier.owner, self._owner
            if former:
                self._at_work.clear()
        if not self._at_work:
            return
        for lease in batch.acks:
            if (request := self._at_work.pop(lease, None)) is not None and not request.meta.get("conditional_forget"):
                self._settle(request)
        for lease in (*batch.releases, *(burial.id for burial in batch.burials)):
            self._at_work.pop(lease, None)
        if self._settled and not self._storing:
            self._storing = True
            in_background(self._tell_redis())

    def _settle(self, request: Request) -> None:
        name, found = self._name(request), self._found.pop(request, None)
        if name is not None and found is not None:
            self._settled[name] = found

    async def _tell_redis(self) -> None:
        while self._settled:
            settled, self._settled = self._settled, {}
            await from_redis(lambda settled=settled: self._validators().store(settled))  # type: ignore[misc]
        self._storing = False

    def _validators(self) -> ValidatorStore:
        """Return the client of validators; in a thread, as the first call may have to find the server."""
        if self._store is None:
            self._store = ValidatorStore(connection.from_settings(self._crawler.settings), keys_of(self._crawler), self._most)
        return self._store
