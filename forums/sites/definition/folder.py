"""Where the site files are. Apart, so that a look at the folder need not load what reads the files."""

from __future__ import annotations

from pathlib import Path

from forums.environment import Sites


def sites_dir() -> Path:
    """TRAWL_SITES_DIR, else the folder `sites` of the project. Raises ConfigError."""
    return Sites.read().sites_dir
