"""Reader of stored raw pages; files may be missing or damaged."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import msgspec
from warcio.archiveiterator import ArchiveIterator
from warcio.exceptions import ArchiveLoadFailed

from .folders import days_of, files_of
from .warc_record import RawPage

logger = logging.getLogger(__name__)


class Broken(msgspec.Struct, frozen=True):
    """A part of a file that could not be read."""

    path: Path
    reason: str


def stored_days(folder: Path, site: str, since: datetime | None = None) -> list[date]:
    """Return the days that may have pages of `site` from `since` on."""
    first = since.astimezone(UTC).date() if since else date.min
    return [day for day in days_of(folder, site) if day >= first]


def read_pages(folder: Path, site: str, since: datetime | None = None) -> Iterator[RawPage | Broken]:
    """Yield the pages of `site`, day by day and file by file; within a file in the order of writing.

    The last record of a file is truncated if its process was killed or is still writing; it is yielded as Broken.
    """
    for day in stored_days(folder, site, since):
        for path in files_of(folder, site, day):
            for page in read_file(path):
                if isinstance(page, Broken) or since is None or datetime.fromisoformat(page.fetched_at) >= since:
                    yield page


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
