"""Folder of the site files. A separate module, so that listing the folder need not import the readers of the files."""

from __future__ import annotations

from pathlib import Path

from forums.environment import Sites


def sites_dir() -> Path:
    """Return TRAWL_SITES_DIR, else the folder `sites` of the project. Raises ConfigError."""
    return Sites.read().sites_dir
