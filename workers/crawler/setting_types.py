"""Reads a crawl's settings: finds those that Scrapy could not read, as its own error names the value and not the setting
(`invalid literal for int() with base 10: 'many'`), and has the limits after which a crawler process is replaced.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scrapy.settings import BaseSettings, default_settings

from redis_components.errors import ConfigError
from redis_components.setting_values import loaded, number_of

if TYPE_CHECKING:
    from scrapy import Spider


COMPONENTS = (
    *("SCHEDULER", "DUPEFILTER_CLASS", "STATS_CLASS", "DOWNLOADER", "ITEM_PROCESSOR", "LOG_FORMATTER", "TWISTED_REACTOR"),
    *("REQUEST_FINGERPRINTER_CLASS", "HTTPCACHE_POLICY", "HTTPCACHE_STORAGE"),
)
"""Settings that name a class each."""
LISTED_BY_KEY = ("ITEM_PIPELINES", "DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES", "EXTENSIONS", "ADDONS")
"""Settings whose keys are classes, or their dotted paths."""
LISTED_BY_VALUE = ("DOWNLOAD_HANDLERS", "FEED_STORAGES", "FEED_EXPORTERS")


def with_spiders_own(settings: BaseSettings, spider: type[Spider]) -> BaseSettings:
    """Return a copy of the settings, with those of the spider, to be read."""
    found = settings.copy()
    found.frozen = False
    spider.update_settings(found)
    return found


def check_types(settings: BaseSettings) -> None:
    """Read texts as Scrapy does, by the types of its defaults. Raises ConfigError, which names the first that does not fit."""
    try:
        settings.getdict("REDIS_PARAMS")
    except (TypeError, ValueError) as error:
        raise ConfigError("REDIS_PARAMS is not a table of names and values: write JSON") from error
    for name in filter(str.isupper, dir(default_settings)):
        default = getattr(default_settings, name)
        if not settings.getpriority(name) or not isinstance(default, int | float):
            continue
        if not isinstance(value := settings.get(name), str):  # an object, which several take
            continue
        is_switch = isinstance(default, bool) or value.lower() in ("true", "false")  # some have 1 as default
        try:
            (settings.getbool if is_switch else settings.getfloat)(name)
        except ValueError:
            what = "a switch: write True or False" if is_switch else "a number"
            raise ConfigError(f"{name} = {value!r:.80} is not {what}") from None


def set_each(settings: BaseSettings, values: Mapping[str, str]) -> None:
    """Put the settings of a command line over the project's. Raises ConfigError for a table that is not JSON."""
    for name, value in values.items():
        try:
            settings.set(name, value, priority="cmdline")
        except (TypeError, ValueError):
            raise ConfigError(f"{name} = {value!r:.80} is not a table: write JSON") from None


def load_components(settings: BaseSettings) -> None:
    """Import every class that the project's settings name. Raises ConfigError, with the setting."""
    for name, path in _named(settings):
        loaded(path, name)


def _named(settings: BaseSettings) -> Iterator[tuple[str, Any]]:
    for name in COMPONENTS:
        yield name, settings.get(name)
    for name in LISTED_BY_KEY:
        for path, place in settings.getdict(name).items():
            if place is not None:
                yield name, path
    for name in LISTED_BY_VALUE:
        for path in settings.getdict(name).values():
            if path is not None:
                yield name, path


MIB = 1024 * 1024
_LIMITS: dict[str, float] = {
    "CRAWLER_MEMORY_SOFT_MB": 0.0,
    "CRAWLER_MEMORY_HARD_MB": 0.0,
    "CRAWLER_MAX_AGE": 0.0,
    "CRAWLER_MAX_PAGES": 0,
}
JITTER = 0.1  # of age and pages: crawlers that were started together are not replaced together


@dataclass(frozen=True, kw_only=True)
class CrawlerLimits:
    """The limits of one crawler process; 0 disables a limit. `docs/reference/settings.md` describes the settings."""

    memory_soft_mb: float = 0.0  # resident MiB from which on it finishes its pages and is replaced
    memory_hard_mb: float = 0.0  # resident MiB from which on it is ended at once
    max_age_s: float = 0.0
    max_pages: int = 0  # responses received

    @classmethod
    def of(cls, settings: BaseSettings, *, luck: float | None = None) -> CrawlerLimits:
        """Read Scrapy's settings; `luck`, a number in [0, 1), takes up to a tenth from age and pages. Raises ConfigError."""
        values = {name: number_of(settings, name, default) for name, default in _LIMITS.items()}
        for name, value in values.items():
            if not 0 <= value < float("inf"):
                raise ConfigError(f"{name} = {value} is out of range: write a positive number, or 0 for no limit")
        soft_mb, hard_mb, max_age_s, max_pages = values.values()
        if soft_mb and hard_mb and hard_mb <= soft_mb:
            raise ConfigError(
                f"CRAWLER_MEMORY_HARD_MB = {hard_mb:g} is not above CRAWLER_MEMORY_SOFT_MB = {soft_mb:g}:"
                " pages could never be finished; leave some room between them"
            )
        part = 1 - JITTER * (random.random() if luck is None else luck)  # noqa: S311 - jitter
        return cls(
            memory_soft_mb=soft_mb,
            memory_hard_mb=hard_mb,
            max_age_s=max_age_s * part,
            max_pages=max(1, round(max_pages * part)) if max_pages else 0,
        )

    @property
    def memory_hard_bytes(self) -> int:
        return round(self.memory_hard_mb * MIB)

    def too_low(self, rss_bytes: int) -> str | None:
        """Return why these limits leave no room to crawl for a process that needs so much before its first page."""
        for name, limit_mb in zip(_LIMITS, (self.memory_soft_mb, self.memory_hard_mb), strict=False):
            if limit_mb and rss_bytes > limit_mb * MIB:
                needs = f"{rss_bytes / MIB:.0f} MiB"
                return f"{name} = {limit_mb:g} is less than a crawler needs before its first page, {needs}: raise it"
        return None

    def exhausted(self, rss_bytes: int) -> str | None:
        """Return why the process has to end at once."""
        if self.memory_hard_mb and rss_bytes > self.memory_hard_mb * MIB:
            return f"{rss_bytes / MIB:.0f} MiB of memory are over CRAWLER_MEMORY_HARD_MB = {self.memory_hard_mb:g}"
        return None

    def reached(self, *, rss_bytes: int, age_s: float, pages: int) -> str | None:
        """Return why the process has to finish its pages and be replaced."""
        if self.memory_soft_mb and rss_bytes > self.memory_soft_mb * MIB:
            return f"{rss_bytes / MIB:.0f} MiB of memory are over CRAWLER_MEMORY_SOFT_MB = {self.memory_soft_mb:g}"
        if self.max_age_s and age_s >= self.max_age_s:
            return f"it is {age_s:.0f} s old (CRAWLER_MAX_AGE)"
        if self.max_pages and pages >= self.max_pages:
            return f"it has fetched {pages} pages (CRAWLER_MAX_PAGES)"
        return None
