"""Trawl's fleet as installed by the wheel `trawl-fleet`: an application in one folder, started by the command `trawl`.

This folder holds the packages of the checkout (`workers`, `forums`, `tasks`, `cli`, ...). They become importable by their names
in the processes that Trawl starts, and in no other: `enter()` puts this folder on `sys.path`.
"""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = str(Path(__file__).resolve().parent)


def enter() -> None:
    """Make Trawl's packages importable in this process, before every other module of the same name."""
    sys.path[:] = [FOLDER, *(entry for entry in sys.path if entry != FOLDER)]


def main() -> int:
    """Run the command `trawl`."""
    enter()
    from cli.start import main as run

    return run()
