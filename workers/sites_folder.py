"""Where the site files are. By itself, so that who only looks at the folder need not load what reads the files."""

from __future__ import annotations

import os
from pathlib import Path

from redis_components.embedded import project_dir


def sites_dir() -> Path:
    """TRAWL_SITES_DIR, else the folder `sites` of the project."""
    return Path(os.environ.get("TRAWL_SITES_DIR") or project_dir() / "sites")
