"""Limits after which a crawler process is replaced: memory, age, pages. Pure: no clock, no I/O."""

from __future__ import annotations

import random
from dataclasses import dataclass

from scrapy.settings import BaseSettings

from redis_components.errors import ConfigError
from redis_components.setting_values import number_of

MIB = 1024 * 1024
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
        soft_mb = number_of(settings, "CRAWLER_MEMORY_SOFT_MB", 0.0)
        hard_mb = number_of(settings, "CRAWLER_MEMORY_HARD_MB", 0.0)
        max_age_s = number_of(settings, "CRAWLER_MAX_AGE", 0.0)
        max_pages = number_of(settings, "CRAWLER_MAX_PAGES", 0)
        for name, value in (
            ("CRAWLER_MEMORY_SOFT_MB", soft_mb),
            ("CRAWLER_MEMORY_HARD_MB", hard_mb),
            ("CRAWLER_MAX_AGE", max_age_s),
            ("CRAWLER_MAX_PAGES", max_pages),
        ):
            if not 0 <= value < float("inf"):
                raise ConfigError(f"{name} = {value} is out of range: write a positive number, or 0 for no limit")
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
        for name, limit_mb in (
            ("CRAWLER_MEMORY_SOFT_MB", self.memory_soft_mb),
            ("CRAWLER_MEMORY_HARD_MB", self.memory_hard_mb),
        ):
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
