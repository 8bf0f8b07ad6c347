"""What the fleet asks the forum crawl (`workers/application.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from forums.sites.definition.folder import sites_dir


def config_folders() -> Sequence[Path]:
    """Trawl's own code for forums, and the folder of the site files."""
    return (Path(__file__).parent, sites_dir())


def site_names() -> Sequence[str]:
    """Names of the site files."""
    from forums.sites import site_names  # loads all that reads site files; few who ask the application name a site

    return site_names()


def site_names_place() -> str:
    """The folder of the site files."""
    return str(sites_dir())
