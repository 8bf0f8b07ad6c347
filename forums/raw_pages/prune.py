"""Deleting raw pages that are older than their sites keep them, on this node. Each node does so for its own disk."""

from __future__ import annotations

import logging
from pathlib import Path

from forums.sites import load_all

from .folders import prune, raw_dir

logger = logging.getLogger(__name__)


def prune_here() -> list[Path]:
    """Delete what is too old; returns the folders of the days that are gone.

    A site whose `keep_days` is 0 keeps nothing beyond the day. One whose file is wrong or gone keeps all, until it is right
    again.
    """
    gone = prune(raw_dir(), {site.name: float(site.raw.keep_days) for site in load_all()[0]})
    if gone:
        logger.info("raw pages that were too old are deleted: %s", ", ".join(str(place) for place in gone))
    return gone
