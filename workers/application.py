"""The interface from the fleet to the application on top of it: its tasks, settings, sites, and consumers of items.

`workers` and `tasks` import no application. TRAWL_APPLICATION names a module with some of the functions of `Application`; without
it the forum crawl is loaded. An empty value means none: then each function returns what `Application` returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from workers.environment.variables import FleetApplication

if TYPE_CHECKING:
    import redis

    from redis_components.keys import CrawlKeys
    from workers.process.page_at_work import PageAtWork


class Round(NamedTuple):
    """Interval of a scheduled task in seconds. `bounds`: the application does not work without it, so it cannot be switched off,
    and its interval can be changed within these bounds.
    """

    every_s: float
    bounds: tuple[float, float] | None = None


Check = Callable[[str, bytes], Any]
"""Parses a field and its value; raises ValueError for a value that Trawl does not write."""


class KeyRules(NamedTuple):
    """An application's keys in Redis, with their types, and the checks of the fields of its hashes."""

    types: Mapping[str, tuple[str, ...]] = {}
    checks: Mapping[str, Check] = {}


class Application:
    """The functions of an application's module, with the results of a fleet without one. They are called often: each must be
    cheap, and import what it needs when it is called.
    """

    def config_folders(self) -> Sequence[Path]:
        """Return folders whose files configure crawlers; a change there is worth another try of a slot that was given up."""
        return ()

    def shared_files(self) -> Mapping[str, Path]:
        """Return files and folders of TOML files that all nodes of a fleet must have alike, by their description."""
        return {}

    def site_names(self) -> Sequence[str]:
        """Return names that may stand in place of a host where a site is paused or drained."""
        return ()

    def site_names_place(self) -> str:
        """Return the origin of `site_names`, for error messages."""
        return "this fleet"

    def scrapy_settings(self) -> Mapping[str, object]:
        """Return settings of Scrapy that `workers/settings.py` takes over, such as SPIDER_MODULES."""
        return {}

    def check(self) -> None:
        """Check the application's variables where a program starts. Raises ConfigError."""

    def task_modules(self) -> Sequence[str]:
        """Return modules with Celery tasks. `from tasks import NAME` finds what is in their `__all__`."""
        return ()

    def schedule(self) -> Mapping[str, Round]:
        """Return the tasks that beat sends: `{"seed_forums": Round(5.0)}` for the task `trawl.seed_forums`."""
        return {}

    def preload(self) -> Sequence[str]:
        """Return modules that its tasks need, which a worker imports once, before it forks its pool."""
        return ()

    def consumers(self) -> Mapping[str, Sequence[str]]:
        """Return its consumers of items, which a spider names as `item_consumer`, each with the spiders of `scrapy_settings` that
        do so.
        """
        return {}

    def key_rules(self, client: redis.Redis, crawls: Sequence[CrawlKeys], *, threads: bool) -> KeyRules:  # noqa: ARG002
        """Return the rules of its keys; with `threads` also those of records that may be millions. Raises redis.RedisError."""
        return KeyRules()

    def on_deadly_page(self, page: PageAtWork, what: str) -> None:
        """Handle a page at which a crawler hung or died; `what` happened. Raises redis.RedisError."""


def application() -> Application:
    """Return the application that TRAWL_APPLICATION names. Raises ImportError when there is no such module."""
    return _registered(FleetApplication.read().application)


@cache
def _registered(name: str) -> Application:
    found = Application()
    if name:
        module = import_module(name)
        vars(found).update({one: vars(module)[one] for one in vars(Application) if one in vars(module) and one[0] != "_"})
    return found
