"""The interface from the fleet to the application on top of it: its tasks, settings, sites, and consumers of items.

`workers` and `tasks` import no application. TRAWL_APPLICATION names a module with some of the functions of `Application`; without
it the forum crawl is loaded. An empty value means none: then each function returns what `Application` returns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from redis_components.server.variables import variable
from workers.environment.declaration import variable_name
from workers.environment.variables import FleetApplication

if TYPE_CHECKING:
    import redis
    from scrapy.http import Response

    from fleet_operations.overview.reader import SitesReader
    from redis_components.keys import CrawlKeys
    from workers.environment.declaration import Variables
    from workers.process.page_at_work import PageAtWork
    from workers.state.group_runs import EndedMember

    from .breaker.hosts import Verdict


class Round(NamedTuple):
    """Interval of a scheduled task in seconds. `bounds`: the application does not work without it, so it cannot be switched off,
    and its interval can be changed within these bounds.
    """

    every_s: float
    bounds: tuple[float, float] | None = None


Check = Callable[[str, bytes], Any]
"""Parses a field and its value; raises ValueError for a value that Trawl does not write."""


class Finding(NamedTuple):
    """Outcome of a check of this machine."""

    state: Literal["ok", "note", "bad"]
    sentence: str
    fix: str = ""


class KeyRules(NamedTuple):
    """An application's keys in Redis, with their types, and the checks of the fields of its hashes."""

    types: Mapping[str, tuple[str, ...]] = {}
    checks: Mapping[str, Check] = {}


class Application:
    """The functions of an application's module, with the results of a fleet without one. They are called often: each must be
    cheap, and import what it needs when it is called.
    """

    def shared_files(self) -> Mapping[str, Path]:
        """Return files and folders of TOML files that all nodes of a fleet must have alike, by their description."""
        return {}

    def site_names(self) -> Sequence[str]:
        """Return names that may stand in place of a host where a site is paused or drained."""
        return ()

    def site_names_place(self) -> str:
        """Return the origin of `site_names`, for error messages."""
        return "this fleet"

    def lanes(self) -> Collection[str]:
        """Return the lanes that its sites name for their limits."""
        return ()

    def variables(self) -> Sequence[type[Variables]]:
        """Return its environment variables, in the groups in which they are read."""
        return ()

    def feeds(self) -> Mapping[str, str]:
        """Return its services that make start tasks for another one, with that."""
        return {}

    def crawler_keys(self) -> Sequence[str]:
        """Return its keys that crawlers write."""
        return ()

    def scrapy_settings(self) -> Mapping[str, object]:
        """Return settings of Scrapy that `workers/settings.py` takes over, such as SPIDER_MODULES."""
        return {}

    def check(self) -> None:
        """Check the application's variables where a program starts. Raises ConfigError."""

    def commands(self) -> Mapping[str, str]:
        """Return its commands of `trawl`, each a function or a group of Typer: `{"seed": "cli.commands.seed.seed"}`."""
        return {}

    def checks(self) -> Mapping[str, Callable[[], Iterable[Finding]]]:
        """Return its checks for `trawl doctor`, by what each looks at. They raise TrawlError and OSError."""
        return {}

    def data_files(self) -> Sequence[Path]:
        """Return files of stored data, which no other user may read."""
        return ()

    def faults(self) -> Iterable[str]:
        """Return the faults of its configuration, a line for each."""
        return ()

    def check_node(self, client: redis.Redis) -> None:
        """Check that this machine fits to the nodes that run elsewhere. Raises TrawlError."""

    def start_warnings(self, services: Collection[str]) -> Sequence[str]:  # noqa: ARG002
        """Return lines about what a fleet of these services lacks, where `trawl up` starts."""
        return ()

    def first_command(self, services: Collection[str]) -> str:  # noqa: ARG002
        """Return the command that gives these services their first work; "" for none."""
        return ""

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

    def verdict(self, response: Response) -> Verdict | None:  # noqa: ARG002
        """Return the fault of a response that is not the page, by its content; None for none, and for ordinary errors."""
        return None

    def probe_sites(self, client: redis.Redis) -> Mapping[str, str]:  # noqa: ARG002
        """Probe its sites whose breaker is open and due; return the outcome by site. Raises redis.RedisError."""
        return {}

    def sites_reader(self, client: redis.Redis) -> SitesReader | None:  # noqa: ARG002
        """Return the reader of its sites for the overview; None: breakers and limits alone are shown."""
        return None

    def stored_members(
        self,
        spider: str,  # noqa: ARG002
        group: str | None,  # noqa: ARG002
        limit: int,  # noqa: ARG002
        *,
        longest_s: float | None = None,  # noqa: ARG002
    ) -> list[EndedMember] | None:
        """Return the latest outcomes of a spider in runs (of a group) that its database has, the youngest first; None where there
        is no database. Raises TrawlError, also where that takes more than `longest_s`.
        """
        return None

    def monitoring(self) -> str:
        """Return the module with its part of metrics and pages (`monitoring/part.py`)."""
        return ""

    def on_deadly_page(self, page: PageAtWork, what: str) -> None:
        """Handle a page at which a crawler hung or died; `what` happened. Raises redis.RedisError."""


def application() -> Application:
    """Return the application that TRAWL_APPLICATION names. Raises ImportError when there is no such module."""
    return _registered(variable(variable_name("application")))


@cache
def _registered(_: str | None) -> Application:
    """Return the application, read once for each text of its variable: a crawler asks for it at each response."""
    found = Application()
    if name := FleetApplication.read().application:
        module = import_module(name)
        vars(found).update({one: vars(module)[one] for one in vars(Application) if one in vars(module) and one[0] != "_"})
    return found
