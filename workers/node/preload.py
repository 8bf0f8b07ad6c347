"""Modules that a worker loads: an operator's own tasks (TRAWL_TASK_MODULES), and what tasks need.

`load_ahead` imports the modules that tasks need once, in the worker's main process, before the pool is forked.
Beat, Flower and the commands import `tasks`, too, and need none of this. It is two thirds of what a worker's start costs, so
task modules import it in their functions.
"""

from __future__ import annotations

import gc
import importlib.util
import sys
from importlib import import_module
from pathlib import Path

from redis_components.errors import ConfigError
from workers.application import application
from workers.environment.variables import Fleet


def own_tasks() -> tuple[str, ...]:
    """Return the modules of TRAWL_TASK_MODULES (`shop.tasks,shop.reports`), from the current directory or installed. Raises
    ConfigError.
    """
    names = Fleet.read().task_modules
    for name in names:
        if not _exists(name):
            raise ConfigError(f"TRAWL_TASK_MODULES: there is no module {name!r}: correct the name, install it, or set PYTHONPATH")
    return names


def _exists(name: str) -> bool:
    sys.path.insert(0, str(Path.cwd()))  # as Celery does when it imports them
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):  # its package is missing, or the name is none
        return False
    finally:
        sys.path.pop(0)


def load_ahead() -> None:
    """Call it before the pool is forked. Its processes share what is loaded, and never look through it for garbage."""
    gc.disable()  # the collector would look again and again at modules that stay
    try:
        for name in application().preload():
            import_module(name)
    finally:
        gc.freeze()
        gc.enable()
