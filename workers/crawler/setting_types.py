"""Reads a crawl's settings, imports the classes that they name, and has the limits after which a crawler process is replaced."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from scrapy.settings import BaseSettings

from redis_components.errors import ConfigError
from redis_components.setting_values import loaded, number_of

COMPONENTS = (
    *("SCHEDULER", "DUPEFILTER_CLASS", "STATS_CLASS", "DOWNLOADER", "ITEM_PROCESSOR", "LOG_FORMATTER", "TWISTED_REACTOR"),
    *("REQUEST_FINGERPRINTER_CLASS", "HTTPCACHE_POLICY", "HTTPCACHE_STORAGE"),
    *("ITEM_PIPELINES", "DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES", "EXTENSIONS", "ADDONS"),
    *("DOWNLOAD_HANDLERS", "FEED_STORAGES", "FEED_EXPORTERS"),
)
"""Settings that name a class, or many: as keys with places, or as values."""


def set_each(settings: BaseSettings, values: Mapping[str, str]) -> None:
    """Put the settings of a command line over the project's. Raises ConfigError for a table that is not JSON."""
    for name, value in values.items():
        try:
            settings.set(name, value, priority="cmdline")
        except (TypeError, ValueError):
            raise ConfigError(f"{name} = {value!r:.80} is not a table: write JSON") from None


def load_components(settings: BaseSettings) -> None:
    """Import every class that the project's settings name. Raises ConfigError, with the setting."""
    for name in COMPONENTS:
        value = settings.get(name)
        many = settings.getdict(name) if isinstance(value, Mapping) else {value: 0}
        for key, place in many.items():
            if place is not None:
                loaded(key if isinstance(place, int | float) else place, name)


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
