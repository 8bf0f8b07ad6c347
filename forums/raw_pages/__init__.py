"""Raw pages of sites with `raw.keep_days`: deleted when they are too old, and read again (`reparse.py`)."""

from __future__ import annotations

import logging
from collections.abc import Collection
from pathlib import Path

from forums.sites import load_all
from workers.raw_pages.store import prune, raw_dir

NONE_OF_TODAY = -1.0
"""Days to keep: the present day is deleted, too."""

logger = logging.getLogger(__name__)


def prune_here(removed: Collection[str] = ()) -> list[Path]:
    """Delete pages that are too old, and all of `removed` sites; return the deleted folders.

    With `keep_days` 0 only the present day is kept. A site whose file is missing or invalid keeps all until it is valid again.
    """
    keep_days = {site.name: float(site.raw.keep_days) for site in load_all()[0]}
    gone = prune(raw_dir(), keep_days | dict.fromkeys(removed, NONE_OF_TODAY))
    if gone:
        logger.info("raw pages that were too old are deleted: %s", ", ".join(str(place) for place in gone))
    return gone
