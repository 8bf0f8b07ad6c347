"""Run one of Trawl's modules as a program: `run_module.py MODULE [ARGUMENT...]`, by its path and with `python -P`.

`python -m MODULE` would look into the current folder first, and that folder is a user's: its `tasks.py` or `redis.py` would be
imported instead. Here the folder of Trawl's packages comes first on `sys.path` and the current folder last, so a user's
own modules (spiders, TRAWL_TASK_MODULES, what `scrapy.cfg` names) are found, and replace nothing.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

FOLDER = str(Path(__file__).resolve().parents[2])
"""Holds Trawl's packages: the checkout, or `trawl_fleet` where the wheel is installed."""


def own_module(module: str, *arguments: str, python: str = "") -> list[str]:
    """Return the command that runs one of Trawl's modules, the same in every current folder; `python`: another interpreter."""
    return [python or sys.executable, "-P", __file__, module, *arguments]


def put_first(folder: str, current: str) -> None:
    """Have modules searched in `folder` before all others, and in `current` after all others."""
    rest = [entry for entry in sys.path if entry not in ("", folder, current)]
    sys.path[:] = [folder, *rest, *([current] if current != folder else [])]


def main() -> None:
    """Become the module that the command line names."""
    module, sys.argv = sys.argv[1], sys.argv[1:]
    put_first(FOLDER, str(Path.cwd()))
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
