"""Writer of raw pages in a separate thread, so that neither the disk nor the compression delays the crawl."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

from warcio.warcwriter import WARCWriter

from redis_components.embedded.files import FILE, private_folder
from redis_components.server.names import below, site_name

from .folders import SUFFIX
from .warc_record import RawPage, compressed

MOST_WAITING = 64 * 1024 * 1024
"""Bytes of pages that wait for the disk; further pages are dropped."""
MOST_OPEN = 32  # files
WELL_S = 60.0
"""The disk counts as well again when no page was dropped for this time."""

logger = logging.getLogger(__name__)


class RawStore:
    """One store for each process. `keep` returns at once and never raises; a page that cannot be written is dropped and
    counted.
    """

    def __init__(self, folder: Path, *, most_waiting: int = MOST_WAITING, rounds: Callable[[], object] | None = None) -> None:
        self._folder = folder
        self._most_waiting = most_waiting
        self._rounds = rounds  # called in the thread at its start, and each hour: deletes old pages
        self._name = f"{socket.gethostname()}-{os.getpid()}-{time.time_ns() // 1_000_000}{SUFFIX}"
        self._pages: deque[RawPage] = deque()
        self._waiting = 0  # bytes
        self._news = threading.Condition()
        self._files: OrderedDict[Path, int] = OrderedDict()  # open files and their descriptors; the last used last
        self._failed_at: float | None = None  # time of the last failure; None: the disk is well
        self._closing = False
        self._thread: threading.Thread | None = None
        self.kept = 0  # written
        self.kept_bytes = 0  # compressed
        self.dropped = 0  # not written: the disk is full, broken or too slow

    def keep(self, page: RawPage) -> None:
        """Queue the page for writing."""
        with self._news:
            if self._closing or self._waiting + len(page.body) > self._most_waiting:
                self.dropped += 1
                return
            self._waiting += len(page.body)
            self._pages.append(page)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="raw pages", daemon=True)
                self._thread.start()
            elif len(self._pages) == 1:
                self._news.notify()

    def close(self, timeout_s: float = 5.0) -> None:
        """Write the queued pages, for `timeout_s` seconds at most."""
        with self._news:
            self._closing = True
            self._news.notify()
        if self._thread is not None:
            self._thread.join(timeout_s)

    # in the thread

    def _work(self) -> None:
        next_round = 0.0
        while True:
            if self._rounds is not None and time.monotonic() >= next_round:
                next_round = time.monotonic() + 3600
                try:
                    self._rounds()
                except Exception:  # deletion of old pages can wait, new pages cannot
                    logger.exception("old raw pages could not be looked for")
            with self._news:
                while not self._pages and not self._closing:
                    self._news.wait(60)
                    if time.monotonic() >= next_round:
                        break
                page = self._pages.popleft() if self._pages else None
                if page is None and self._closing:
                    break
            if page is not None:
                self._write(page)
                with self._news:
                    self._waiting -= len(page.body)
        for descriptor in self._files.values():
            os.close(descriptor)

    def _write(self, page: RawPage) -> None:
        try:
            record = page.to_record()
            _append(self._file(page), record)
        except Exception as error:  # OSError; a page that cannot be a record must not end the thread
            self.dropped += 1
            is_first, self._failed_at = self._failed_at is None, time.monotonic()
            if is_first:
                where = self._folder / page.site
                logger.error("raw pages are not kept in %s: %s; the crawl goes on without them", where, error)
            return
        self.kept += 1
        self.kept_bytes += len(record)
        # Small pages may still fit onto a full disk.
        if self._failed_at is not None and time.monotonic() - self._failed_at >= WELL_S:
            self._failed_at = None
            logger.warning("raw pages are kept again; %d were not", self.dropped)

    def _file(self, page: RawPage) -> int:
        path = below(self._folder, site_name(page.site), page.day, self._name)
        if path in self._files:
            self._files.move_to_end(path)
            return self._files[path]
        private_folder(path.parent)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, FILE)
        self._files[path] = descriptor
        if len(self._files) > MOST_OPEN:
            _, oldest = self._files.popitem(last=False)
            os.close(oldest)
        if os.fstat(descriptor).st_size == 0:
            _append(descriptor, _head(self._name))
        return descriptor


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
