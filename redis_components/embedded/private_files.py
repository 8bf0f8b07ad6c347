"""Folders and files that only their owner may read, also on a machine with other users."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER, FILE = 0o700, 0o600


def private_folder(path: Path) -> Path:
    """Make the folder, and those above it that are missing, each readable by its owner only; one that is there stays as it is.

    Raises OSError.
    """
    missing = []
    for folder in (path, *path.parents):
        if folder.exists():
            break
        missing.append(folder)
    for folder in reversed(missing):
        folder.mkdir(mode=FOLDER, exist_ok=True)  # `parents=True` would make those above it readable by all users
    path.mkdir(exist_ok=True)  # raises where a file has the name
    return path


def private_file(path: Path) -> None:
    """Make an empty file that only its owner may read, unless there is one already. Raises OSError."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE))
