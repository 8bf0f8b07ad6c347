"""The run of one migration: settings of the project, crawlers that still work, and each part in its order.

Crawlers of scrapy-redis leave no trace in Redis while they wait, so their commands are looked for: an idle one looks for requests
every five seconds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import redis
from redis.cluster import RedisCluster
from redis.exceptions import NoPermissionError, ResponseError
from scrapy import Spider
from scrapy.settings import BaseSettings
from scrapy.spiderloader import SpiderLoader
from scrapy.utils.project import ENVVAR, get_project_settings

from redis_components import defaults
from redis_components.dupefilter import dupefilter_class, is_fused
from redis_components.errors import ConfigError, TrawlError
from redis_components.filters import Filter
from redis_components.frontier.messages import QueueOrder
from redis_components.keys import CrawlKeys, filled
from redis_components.queue import order_of
from redis_components.scrapy_glue.engine import crawl_keys
from redis_components.server.names import namespace_of, prefixed
from redis_components.setting_values import object_of

from . import fingerprints, queue
from .fingerprints import FingerprintsFound, FingerprintsReport
from .members import BothKeys
from .queue import Members, QueueFound, QueueReport


class StartKey(NamedTuple):
    """The key of start tasks in both packages: mostly the same."""

    theirs: str
    ours: str


@dataclass(frozen=True, kw_only=True)
class Project:
    """One spider of a project."""

    settings: BaseSettings
    keys: BothKeys
    start_keys: tuple[StartKey, ...]
    order: QueueOrder | None  # None: a queue class of the project's own, which goes on with what it has stored
    filter: Filter | None  # None: the project has its own dupefilter class
    keeps_payloads: bool  # SCHEDULER_SERIALIZER reads what scrapy-redis stored


def project_of(spider: str, module: str | None = None) -> Project:
    """Return the project of `spider` by the settings `module`, else by those that Scrapy finds (SCRAPY_SETTINGS_MODULE,
    scrapy.cfg).

    Without a project the defaults hold. Raises ConfigError for settings or spiders that cannot be loaded.
    """
    settings, cls = _settings(module), None
    try:
        cls = SpiderLoader.from_settings(settings).load(spider)
        cls.update_settings(settings)
    except KeyError:  # the defaults do for a spider that is not here
        pass
    except Exception as exc:  # the project's modules may raise anything while they are imported
        raise ConfigError(f"SPIDER_MODULES: the spiders cannot be loaded: {type(exc).__name__}: {exc}") from exc
    queue = object_of(settings, "SCHEDULER_QUEUE_CLASS", defaults.SCHEDULER_QUEUE_CLASS)
    return Project(
        settings=settings,
        keys=_keys(settings, spider),
        start_keys=_start_keys(settings, spider, cls),
        order=order_of(queue),
        filter=_filter(settings),
        keeps_payloads=bool(settings.get("SCHEDULER_SERIALIZER")),
    )


def _filter(settings: BaseSettings) -> Filter | None:
    cls = dupefilter_class(settings)
    return cls.filter_from_settings(settings) if is_fused(cls) else None


def _settings(module: str | None) -> BaseSettings:
    if module is not None:
        os.environ[ENVVAR] = module
    try:
        return get_project_settings()
    except Exception as exc:  # the user's module may raise anything while it is imported
        raise ConfigError(f"the project's settings cannot be loaded: {type(exc).__name__}: {exc}") from exc


def _keys(settings: BaseSettings, spider: str) -> BothKeys:
    without = settings.copy()
    without.set("REDIS_NAMESPACE", "", priority="cmdline")  # which scrapy-redis does not know
    return BothKeys(theirs=crawl_keys(without, spider), ours=crawl_keys(settings, spider))


def _start_keys(settings: BaseSettings, spider: str, cls: type[Spider] | None) -> tuple[StartKey, ...]:
    named: Any = getattr(cls, "redis_key", None) or settings.get("REDIS_START_URLS_KEY", defaults.START_URLS_KEY)
    keys = [filled(str(key), spider) for key in ([named] if isinstance(named, str) else named)]
    return tuple(StartKey(key, prefixed(key, namespace_of(settings))) for key in keys)


# Commands by which scrapy-redis stores, pops or filters; others may look at the sizes.
_AT_WORK = frozenset(
    ["ZADD", "ZREMRANGEBYRANK", "ZPOPMIN", "BZPOPMIN", "SADD", "LPUSH", "RPUSH", "LPOP", "RPOP", "BLPOP", "BRPOP"],
)


def seen_at_work(client: redis.Redis, keys: CrawlKeys, seconds: float) -> str | None:
    """Return address and command of a client that works with the queue or the dupefilter, if one does so within `seconds`.

    Redis reports each of its commands meanwhile (MONITOR). Raises ConfigError for a user who may not ask for that.
    """
    server: object = client  # redis-py's two classes have no common base
    if isinstance(server, RedisCluster):
        raise ConfigError("crawlers of scrapy-redis are not looked for in a Cluster: stop all of them, then add --watch 0")
    db = int(client.get_connection_kwargs().get("db") or 0)
    watched, end = {keys.requests, keys.dupefilter}, time.monotonic() + seconds
    try:
        with client.monitor() as monitor:  # type: ignore[no-untyped-call]  # redis-py has no types for it
            while (left_s := end - time.monotonic()) > 0 and monitor.connection.can_read(left_s):
                entry = monitor.next_command()
                name, key, *_ = f"{entry['command']}  ".split(" ", 2)
                if name.upper() in _AT_WORK and key in watched and entry["db"] == db and entry["client_type"] != "lua":
                    return f"{entry['client_address']}:{entry['client_port']} ({name.upper()})"
    except (NoPermissionError, ResponseError) as exc:
        raise ConfigError(
            f"cannot look for crawlers of scrapy-redis, MONITOR is refused ({exc}): stop all of them, then add --watch 0"
        ) from exc
    return None


@dataclass(frozen=True, kw_only=True)
class Options:
    """The operator's options."""

    allow_pickle: bool = False
    order: QueueOrder | None = None  # of a queue that is a list, where the project does not name one
    watch_s: float = 6.0  # time to look for crawlers of scrapy-redis; 0: not at all


Progress = Callable[[str, int, int], None]
"""Called with the kind of entries that are imported, the number done, and of all."""


@dataclass(kw_only=True)
class MigrationReport:
    """The outcome of an import."""

    spider: str
    requests: QueueReport = field(default_factory=QueueReport)
    fingerprints: FingerprintsReport = field(default_factory=FingerprintsReport)
    late: int = 0  # requests and fingerprints that an old crawler has written meanwhile
    seconds: float = 0.0


def migrate(client: redis.Redis, spider: str, project: Project, options: Options, progress: Progress) -> MigrationReport:
    """Import the keys that scrapy-redis left of one spider's crawl.

    Raises ConfigError where an option is missing, TrawlError while a crawler of either package works there.
    """
    began = time.monotonic()
    report = MigrationReport(spider=spider)
    _Import(client=client, project=project, options=options, report=report, progress=progress).run()
    for key in project.start_keys:  # under a namespace they move with the crawl, unless ours already has tasks
        if key.theirs != key.ours and client.exists(key.theirs):
            client.renamenx(key.theirs, key.ours)
    report.seconds = time.monotonic() - began
    return report


@dataclass(kw_only=True)
class _Import:
    """The queue and the dupefilter of one spider."""

    client: redis.Redis
    project: Project
    options: Options
    report: MigrationReport
    progress: Progress

    def __post_init__(self) -> None:
        self._keys = self.project.keys
        self._as_is = self.project.keeps_payloads

    def run(self) -> None:
        """Look, check, and import."""
        found, known = self._look()
        if not found.total and not known.total:
            return
        order = queue.order_of(found, self.options.order or self.project.order)
        self._check_members(found)
        self._watch()
        self._do(found, known, order)

    def _look(self) -> tuple[QueueFound, FingerprintsFound]:
        """Return the content to import; the project's own classes go on with what they have stored, so that is left alone."""
        found = queue.inspect_queue(self.client, self._keys) if self.project.order else queue.NOTHING
        ours = self.project.filter
        return found, fingerprints.inspect_fingerprints(self.client, self._keys, ours) if ours else fingerprints.NOTHING

    def _check_members(self, found: QueueFound) -> None:
        if found.members is Members.PICKLES and not self._as_is and not self.options.allow_pickle:
            raise ConfigError(
                "the queue holds pickles, which can run code when they are read: add --allow-pickle, and a process that is shut"
                " in reads them; or keep them as they are with SCHEDULER_SERIALIZER = 'redis_components.picklecompat'"
            )
        if found.members is Members.OTHER and not self._as_is:
            raise ConfigError(
                "the queue holds no pickles, so they are of a SCHEDULER_SERIALIZER of the project: keep that setting"
            )

    def _watch(self) -> None:
        if not self.options.watch_s:
            return
        if at_work := seen_at_work(self.client, self._keys.theirs, self.options.watch_s):
            raise TrawlError(f"a crawler of scrapy-redis works there, {at_work}: stop all of them first; nothing was changed")

    def _do(self, found: QueueFound, known: FingerprintsFound, order: QueueOrder) -> None:
        queue.put_aside(self.client, self._keys, found)  # first: from now on nothing of old crawlers can be taken for ours
        if self.project.filter:
            self.report.fingerprints = fingerprints.import_fingerprints(
                self.client, self._keys, known, self.project.filter, progress=self._part("fingerprints")
            )
        self.report.requests = queue.import_requests(
            self.client, self._keys, found, order, as_is=self._as_is, progress=self._part("requests")
        )
        self.report.late = sum(one.foreign for one in self._look())

    def _part(self, what: str) -> Callable[[int, int], None]:
        return lambda done, total: self.progress(what, done, total)
