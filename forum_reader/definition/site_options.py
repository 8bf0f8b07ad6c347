"""The table `breaker` of a site file: when the breaker opens, and how the site is probed."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, HttpUrl, ValidationInfo, field_validator, model_validator


class BreakerOptions(BaseModel):
    """`[breaker]` of a site file."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)

    enabled: bool = Field(default=True, description="open the breaker where the site sends walls instead of pages")
    in_a_row: int = Field(default=5, ge=1, description="number of blocked responses in a row that opens it")
    share: float = Field(default=0.5, gt=0, le=1, description="share of blocked responses among the last 40 that opens it")
    attempts: int = Field(
        default=3, ge=1, description="attempts after which a page is given up that is blocked while others are not"
    )
    probe_s: float = Field(default=30, gt=0, description="seconds until the first probe; doubled for each further one")
    probe_max_s: float = Field(default=3600, gt=0, description="longest time between two probes, in seconds")
    good_probes: int = Field(default=2, ge=1, description="number of good probes in a row that closes it")
    probe_url: HttpUrl | None = Field(default=None, description="the page to probe; else the first list page of the first forum")

    @model_validator(mode="after")
    def _in_order(self) -> BreakerOptions:
        if self.probe_max_s < self.probe_s:
            raise ValueError(f"probe_max_s = {self.probe_max_s:g}: must not be less than probe_s = {self.probe_s:g}")
        return self


_STRICT = ConfigDict(defer_build=True, extra="forbid", frozen=True)


class Discover(BaseModel):
    """Forums of the index that are watched, in addition to those of `forums`."""

    model_config = _STRICT

    include: tuple[str, ...] = Field(default=("*",), description="patterns of ids or names, as in `news-*`")
    exclude: tuple[str, ...] = Field(default=(), description="patterns of ids or names that are left out")

    def lets_in(self, forum: str, name: str | None) -> bool:
        """Return True if a forum with this id and name is watched."""
        return _fits(self.include, forum, name) and not _fits(self.exclude, forum, name)


def _fits(patterns: Sequence[str], forum: str, name: str | None) -> bool:
    return any(fnmatchcase(forum, pattern) or (name is not None and fnmatchcase(name, pattern)) for pattern in patterns)


class ScanLimits(BaseModel):
    """Depth of one scan of the site."""

    model_config = _STRICT

    pages_per_scan: int = Field(default=20, ge=1, description="list pages of one scan")
    deep_pages: int = Field(default=200, ge=1, description="list pages of a scan that closes a gap")
    comments_per_thread: int = Field(default=5000, ge=1, description="comments read of one thread")


class Schedule(BaseModel):
    """Frequency of scans."""

    model_config = _STRICT

    scan_budget_per_hour: float = Field(
        default=1200,
        gt=0,
        description="requests for which scans and checks are planned; never more than `politeness.per_hour`",
    )
    min_interval_s: float = Field(default=30, gt=0, description="least time between two scans of a forum, s")
    max_interval_s: float = Field(default=86400, gt=0, description="most time between two scans of a forum, s")
    recheck_days: float = Field(default=30, ge=0, description="age up to which threads are checked for edits and deletions, days")
    checks_per_request: float = Field(
        default=0.125,
        ge=0,
        description="most requests for these checks, for each request of list pages and changed threads in the last hour",
    )
    backfill_share: float = Field(default=0.2, ge=0, le=1, description="share of the budget for checks and history")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.max_interval_s < self.min_interval_s:
            raise ValueError(f"max_interval_s must not be below min_interval_s = {self.min_interval_s:g}")
        return self


CRAWLER_DELAY_S, CRAWLER_CONCURRENCY = 0.5, 2
"""Pace of each crawler where the file leaves `rate` and `concurrency` out."""


class Politeness(BaseModel):
    """Limits of requests to the site, of all crawlers together."""

    model_config = _STRICT

    rate: float | None = Field(
        default=None,
        ge=0,
        le=1e4,
        description="requests per second; 0: no limit; left out: no limit, and each crawler sends one in 0.5 s",
    )
    burst: int = Field(default=1, ge=1, le=10_000, description="requests that may be sent at once after a pause")
    concurrency: int | None = Field(
        default=None,
        ge=0,
        le=10_000,
        description="requests at a time; 0: no limit; left out: no limit, and each crawler has 2",
    )
    weight: int = Field(
        default=1, ge=1, le=100, description="requests of this site for each of another site with limits, while both have work"
    )
    per_hour: int | None = Field(default=None, ge=1, le=10**9, description="requests in any hour; left out: no limit")
    per_day: int | None = Field(default=None, ge=1, le=10**9, description="requests in any 24 hours; left out: no limit")
    quiet: str | None = Field(
        default=None,
        description="hours in which nothing is sent, as `01:00-06:00`; in `time_zone`, or with a zone behind them",
    )

    lane: str | None = Field(
        default=None,
        description="name under which sites share the limits of all crawlers, as those on one server; the lowest limits count",
    )
    obey_robots: bool = Field(default=True, description="obey robots.txt")

    @property
    def crawler_delay_s(self) -> float:
        """Seconds between two requests of a process that keeps no limits together with others."""
        return CRAWLER_DELAY_S if self.rate is None else 1 / self.rate if self.rate else 0.0

    @property
    def crawler_concurrency(self) -> int | None:
        """Requests of one crawler at a time; None: as many as it has."""
        return CRAWLER_CONCURRENCY if self.concurrency is None else self.concurrency or None

    @field_validator("rate")
    @classmethod
    def _not_too_slow(cls, rate: float | None) -> float | None:
        if rate and rate < 1e-5:
            raise ValueError("must be 0, for no limit, or 1e-05 and more")
        return rate

    @field_validator("lane", "quiet")
    @classmethod
    def _as_its_limiter_reads_it(cls, text: str | None, info: ValidationInfo) -> str | None:
        check = (info.context or {}).get(info.field_name)
        if check is not None and text is not None:
            check(text)
        return text


class Raw(BaseModel):
    """Copies of the pages as received."""

    model_config = _STRICT

    keep_days: int = Field(default=0, ge=0, description="days for which they are kept; 0: not at all")
