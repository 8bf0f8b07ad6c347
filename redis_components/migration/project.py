"""The settings of a Scrapy project for the imported crawl: its Redis, keys, order, serializer, dupefilter and spider."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, NamedTuple

from scrapy import Spider
from scrapy.settings import BaseSettings
from scrapy.spiderloader import SpiderLoader
from scrapy.utils.project import ENVVAR, get_project_settings

from redis_components import defaults
from redis_components.dupefilter import dupefilter_class, is_fused
from redis_components.dupefilters.kinds import Filter
from redis_components.errors import ConfigError
from redis_components.frontier.messages import QueueOrder
from redis_components.keys import filled
from redis_components.queue import order_of
from redis_components.scrapy_glue.config import crawl_keys
from redis_components.server.names import namespace_of, prefixed
from redis_components.setting_values import object_of
from redis_components.spiders import RedisMixin

from .members import BothKeys


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
    own_start_tasks: bool  # the spider reads start tasks of another form


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
        own_start_tasks=getattr(cls, "make_request_from_data", None) not in (None, RedisMixin.make_request_from_data),
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
