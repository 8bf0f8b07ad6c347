"""Implementation of the application interface of the fleet (`workers/application.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import forum_reader
from forums.environment import Events
from forums.sites.load import sites_dir


def config_folders() -> Sequence[Path]:
    """Return the folders with Trawl's code for forums, with the reader's, and with the site files."""
    return (Path(__file__).parent, Path(forum_reader.__file__).parent, sites_dir())


def shared_files() -> Mapping[str, Path]:
    """Return the folder of the site files, and the file of the outputs of events."""
    return {"site files": sites_dir(), "events.toml": Events.read().events_file}


def site_names() -> Sequence[str]:
    """Return the names of the site files."""
    from forums.sites import site_names  # loads all code that reads site files, which few callers need

    return site_names()


def site_names_place() -> str:
    """Return the folder of the site files."""
    return str(sites_dir())
