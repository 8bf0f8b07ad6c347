"""Raw pages on disk: folders by spider and day, with their size and the deletion of old days, and the writer of a process."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from email.utils import format_datetime
from io import BytesIO
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Self

import msgspec
from warcio.archiveiterator import ArchiveIterator
from warcio.exceptions import ArchiveLoadFailed
from warcio.recordloader import ArcWarcRecord
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from redis_components.embedded import data_dir
from redis_components.embedded.files import FILE, private_folder
from redis_components.server.names import below, is_name, site_name

if TYPE_CHECKING:
    from scrapy.http import Response


CONTEXT = "Trawl-Page"
"""Header of a record: Trawl's context of the page, as JSON in ASCII."""
ASKED = "Trawl-Request-URI"
"""Header of a record: the requested URL, if a redirect led elsewhere."""
KEPT_HEADERS = (b"content-type", b"content-language", b"link", b"last-modified", b"date")
"""Headers needed for decoding, paging and relative dates; no cookies."""
LEVEL = 4  # of zlib: 9 takes four times as long and saves 3 %


class RawPage(msgspec.Struct, frozen=True, kw_only=True):
    """The last response to a request, decompressed."""

    site: str
    page: dict[str, Any]  # `meta["page"]`: kind, forum, thread, number
    url: str
    request_url: str  # before redirects
    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    fetched_at: str  # ISO 8601, UTC, ms: equal to that of the page's items

    @classmethod
    def of(cls, response: Response, site: str, page: Mapping[str, Any], fetched_at: str) -> Self:
        """Build the page from a Scrapy response."""
        request = response.request
        asked = request.meta.get("redirect_urls", [request.url])[0] if request is not None else response.url
        headers = tuple((name, value) for name in KEPT_HEADERS for value in response.headers.getlist(name))
        if b"date" not in dict(headers):  # makes "2 hours ago" mean the same when the page is parsed again
            at = format_datetime(datetime.fromisoformat(fetched_at).astimezone(UTC), usegmt=True)
            headers += ((b"date", at.encode()),)
        return cls(
            site=site,
            page=dict(page),
            url=response.url,
            request_url=asked,
            status=response.status,
            headers=headers,
            body=response.body,
            fetched_at=fetched_at,
        )

    @property
    def day(self) -> str:
        """`2026-11-22`."""
        return self.fetched_at[:10]

    def to_record(self) -> bytes:
        """Encode the page as a record of type `response`, compressed separately."""
        headers = [(name.decode("latin-1").title(), value.decode("latin-1")) for name, value in self.headers]
        headers.append(("Content-Length", str(len(self.body))))
        context = {"site": self.site, **self.page}
        named = {
            "WARC-Date": self.fetched_at.replace("+00:00", "Z"),
            CONTEXT: json.dumps(context),
            **({ASKED: self.request_url} if self.request_url != self.url else {}),
        }
        plain = BytesIO()
        writer = WARCWriter(plain, gzip=False, warc_version="1.1")
        record = writer.create_warc_record(
            self.url,
            "response",
            payload=BytesIO(self.body),
            length=len(self.body),
            warc_headers_dict=named,
            http_headers=StatusAndHeaders(f"{self.status} ", headers, protocol="HTTP/1.1"),
        )
        writer.write_record(record)
        return compressed(plain.getvalue())

    @classmethod
    def from_record(cls, record: ArcWarcRecord) -> Self:
        """Parse a record of `to_record`. Raises ValueError for a record that Trawl did not write, or a truncated one."""
        named, http = record.rec_headers, record.http_headers
        context, date = named.get_header(CONTEXT), named.get_header("WARC-Date")
        if not context or not date or http is None:
            raise ValueError(f"not a page that Trawl kept: it has no header {CONTEXT}")
        page = json.loads(context)
        body = record.raw_stream.read()
        if len(body) != int(http.get_header("Content-Length") or -1):
            raise ValueError("cut off")
        url = named.get_header("WARC-Target-URI")
        return cls(
            site=page.pop("site"),
            page=page,
            url=url,
            request_url=named.get_header(ASKED) or url,
            status=int(http.get_statuscode()),
            headers=tuple(
                (name.lower().encode("latin-1"), value.encode("latin-1"))
                for name, value in http.headers
                if name != "Content-Length"
            ),
            body=body,
            fetched_at=date.replace("Z", "+00:00"),
        )


def compressed(record: bytes) -> bytes:
    """Compress a record to a gzip member."""
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    return packer.compress(record) + packer.flush()


_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
SUFFIX = ".warc.gz"

logger = logging.getLogger(__name__)


def raw_dir() -> Path:
    """Return `raw` in the folder of Trawl's data (TRAWL_DATA_DIR) on this node."""
    return data_dir() / "raw"


def days_of(folder: Path, site: str) -> list[date]:
    """Return the days with pages of `site`, the oldest first."""
    if not is_name(site):
        return []
    try:
        names = [entry.name for entry in (folder / site).iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(date.fromisoformat(name) for name in names if _DAY.fullmatch(name))


def files_of(folder: Path, site: str, day: date) -> Iterator[Path]:
    """Yield the files of one day, in the order of their names."""
    yield from sorted(below(folder, site_name(site), day.isoformat()).glob(f"*{SUFFIX}"))


class Broken(msgspec.Struct, frozen=True):
    """A part of a file that could not be read."""

    path: Path
    reason: str


def read_file(path: Path) -> Iterator[RawPage | Broken]:
    """Yield the pages of one file."""
    try:
        with path.open("rb") as file:
            records = ArchiveIterator(file)
            while True:
                try:
                    record = next(records)
                except StopIteration:
                    return
                if record.rec_type == "response":
                    try:
                        yield RawPage.from_record(record)
                    except (ValueError, KeyError, TypeError) as error:
                        yield Broken(path, str(error))
    except (ArchiveLoadFailed, zlib.error, EOFError, OSError) as error:
        yield Broken(path, " ".join(str(error).split()))


def pages_in(file: Path) -> Iterator[RawPage]:
    """Yield the pages of a file that can be read: what is being written is left out."""
    return (page for page in read_file(file) if isinstance(page, RawPage))


def size_of(folder: Path, site: str) -> int:
    """Return the size of the pages of `site` on this node, in bytes."""
    return sum(file.stat().st_size for day in days_of(folder, site) for file in files_of(folder, site, day))


def prune(folder: Path, keep_days: Mapping[str, float], now: datetime | None = None) -> list[Path]:
    """Delete days older than `keep_days` of their site; return their folders. Safe to run concurrently.

    A day is deleted when its last page is too old. Folders of unknown sites stay: the site file may be missing for a moment only.
    """
    gone = []
    now = now or datetime.now(UTC)
    for site, days in keep_days.items():
        for day in days_of(folder, site):
            ended = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
            if now - ended <= timedelta(days=days):
                continue
            place = below(folder, site_name(site), day.isoformat())
            try:
                shutil.rmtree(place)
            except FileNotFoundError:
                continue  # deleted by another process
            except OSError as error:
                logger.warning("%s is too old and cannot be deleted: %s", place, error)
                continue
            gone.append(place)
    return gone


MOST_WAITING = 64 * 1024 * 1024
"""Bytes of pages that wait for the disk; further pages are dropped."""
REPORTED_S = 600.0
"""A page that cannot be written is reported where that was not reported for this time."""


class RawStore:
    """One store for each process. `keep` returns at once and never raises; a page that cannot be written is dropped and
    counted.
    """

    def __init__(
        self,
        folder: Path,
        *,
        rounds: Callable[[], object] = lambda: None,
        inc_value: Callable[[str, int], object] = lambda _name, _number: None,
    ) -> None:
        self._folder = folder
        self._inc_value = inc_value  # of the stats of the thread that calls: they are updated at the next page
        self._counted = (0, 0, 0)
        self._rounds = rounds  # called in the thread at its start, and each hour: deletes old pages
        self._name = f"{socket.gethostname()}-{os.getpid()}-{time.time_ns() // 1_000_000}{SUFFIX}"
        self._pages: SimpleQueue[RawPage | None] = SimpleQueue()  # None: no more come
        self._waiting, self._lock = 0, threading.Lock()  # bytes
        self._reported_at = float("-inf")  # time of the last report of a failure
        self._closing = False
        self._thread: threading.Thread | None = None
        self.kept = 0  # written
        self.kept_bytes = 0  # compressed
        self.dropped = 0  # not written: the disk is full, broken or too slow

    def keep(self, page: RawPage) -> None:
        """Queue the page for writing, and update the stats."""
        self._count()
        with self._lock:
            if self._closing or self._waiting + len(page.body) > MOST_WAITING:
                self.dropped += 1
                return
            self._waiting += len(page.body)
        self._pages.put(page)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="raw pages", daemon=True)
            self._thread.start()

    def close(self, timeout_s: float = 5.0) -> None:
        """Write the queued pages, for `timeout_s` seconds at most."""
        self._closing = True
        self._pages.put(None)
        if self._thread is not None:
            self._thread.join(timeout_s)
        self._count()

    def _count(self) -> None:
        now = (self.kept, self.kept_bytes, self.dropped)
        for name, value, counted in zip(("kept", "bytes", "dropped"), now, self._counted, strict=True):
            if value > counted:
                self._inc_value(f"raw/{name}", value - counted)
        self._counted = now

    # in the thread

    def _work(self) -> None:
        next_round = 0.0
        while True:
            if time.monotonic() >= next_round:
                next_round = time.monotonic() + 3600
                try:
                    self._rounds()
                except Exception:  # deletion of old pages can wait, new pages cannot
                    logger.exception("old raw pages could not be looked for")
            try:
                page = self._pages.get(timeout=60)
            except Empty:
                continue
            if page is None:
                return
            self._write(page)
            with self._lock:
                self._waiting -= len(page.body)

    def _write(self, page: RawPage) -> None:
        try:
            record = page.to_record()
            self._append(page, record)
        except Exception as error:  # OSError; a page that cannot be a record must not end the thread
            self.dropped += 1
            if time.monotonic() - self._reported_at >= REPORTED_S:
                self._reported_at = time.monotonic()
                where = self._folder / page.site
                logger.error("raw pages are not kept in %s: %s; the crawl goes on without them", where, error)
            return
        self.kept += 1
        self.kept_bytes += len(record)

    def _append(self, page: RawPage, record: bytes) -> None:
        path = below(self._folder, site_name(page.site), page.day, self._name)
        private_folder(path.parent)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, FILE)
        try:
            head = b"" if os.fstat(descriptor).st_size else _head(self._name)
            _append(descriptor, head + record)
        finally:
            os.close(descriptor)


def _append(descriptor: int, record: bytes) -> None:
    """Write the whole record, or nothing: a partial record, from a full disk, would hide all later ones."""
    before = os.fstat(descriptor).st_size
    left = memoryview(record)
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError:
        os.ftruncate(descriptor, before)
        raise


def _head(name: str) -> bytes:
    plain = BytesIO()
    writer = WARCWriter(plain, gzip=False, warc_version="1.1")
    writer.write_record(writer.create_warcinfo_record(name, {"software": "trawl", "format": "WARC File Format 1.1"}))
    return compressed(plain.getvalue())
