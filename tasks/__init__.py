"""The fleet's Celery application and its tasks.

from tasks import seed_forums
seed_forums.delay(["python-help", "announcements"], site="example")
"""

import gc

if collecting := gc.isenabled():  # a fifth of a start: the collector would look again and again at modules that stay
    gc.disable()

import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

if (_folder := str(Path(__file__).resolve().parents[1])) not in sys.path[1:]:
    sys.path.append(_folder)  # Celery has the current folder first, and removes it after it has imported this package

from workers.application import application

from .app import app
from .fleet import (
    consume_items,
    drain_fleet,
    drain_site,
    install_version,
    pause_fleet,
    pause_site,
    probe_sites,
    reconcile_fleet,
    resume_fleet,
    resume_site,
    roll_fleet,
    run_crawler,
    sample_fleet,
    scale_fleet,
    stop_fleet,
)
from .jobs import cancel_job, crawl, crawl_once, run_group, seed_urls

if collecting:
    gc.enable()

__all__ = [  # noqa: RUF022 - in groups
    "app",
    # sent by users
    "seed_urls",
    "scale_fleet",
    "roll_fleet",
    "crawl",
    "cancel_job",
    "run_group",
    "crawl_once",
    "pause_fleet",
    "drain_fleet",
    "stop_fleet",
    "resume_fleet",
    "pause_site",
    "drain_site",
    "resume_site",
    # sent by beat
    "reconcile_fleet",
    "probe_sites",
    "sample_fleet",
    # sent by trawl deploy
    "install_version",
    # sent by reconcile_fleet
    "run_crawler",
    "consume_items",
]


_FLEETS_OWN: list[str] = globals().pop("__all__")  # `import *` asks `__getattr__` for it, which adds the application's


@cache
def _of_application() -> dict[str, ModuleType]:
    """Return the names of the application's tasks, with their modules."""
    modules = [import_module(name) for name in application().task_modules()]
    return {name: module for module in modules for name in module.__all__}


def __getattr__(name: str) -> Any:
    # The application's tasks are loaded when one is asked for. A worker and a beat load them at their start (`include`).
    if name == "__all__":
        return [*_FLEETS_OWN, *_of_application()]
    if name[:1] != "_" and name in (found := _of_application()):
        return getattr(found[name], name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
