"""An operator's own tasks in the fleet: the modules that TRAWL_TASK_MODULES names."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from redis_components.errors import ConfigError
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
