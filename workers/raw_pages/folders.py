"""Folders of raw pages: location, size, and deletion of old days."""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from redis_components.embedded import data_dir
from redis_components.server.names import below, is_name, site_name

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
