"""Model of a site file, with its tables of options: the breaker, what is watched, how deep and how often, politeness."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Annotated, Any, Self, TypeVar, get_args
from zoneinfo import ZoneInfo

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    HttpUrl,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from forum_reader.dates.post_calendar import check_language
from forum_reader.errors import SiteError
from forum_reader.recognise.page_marks import Recognise

from . import page_requests
from .page_requests import PageRequest, Place, apart, place_of, with_body
from .pages import Page, PageKind, Pages, RowsPage

_STRICT = ConfigDict(defer_build=True, extra="forbid", frozen=True)

Spec = TypeVar("Spec", bound=Page)
SITE_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$"
Name = Annotated[str, Field(pattern=SITE_NAME)]
ForumId = Annotated[
    str, Field(pattern=r"^[^\s/][^\s]*$", max_length=200), BeforeValidator(lambda v: str(v) if type(v) is int else v)
]


class BreakerOptions(BaseModel):
    """`[breaker]` of a site file."""

    model_config = _STRICT

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


class Site(BaseModel):
    """One site: its address, its forums, its pages, and the frequency and depth of scans."""

    model_config = _STRICT

    name: Name = Field(description="the file's name without `.toml`; need not be given")
    profile: str | None = Field(
        default=None, description="the software: values are taken from this profile where the file has none"
    )
    base_url: HttpUrl = Field(description="address of the site; the paths of `pages` come behind it")
    also_allowed: tuple[HttpUrl, ...] = Field(default=(), description="other places that may be fetched, as after a redirect")
    send_headers_to: tuple[HttpUrl, ...] = Field(
        default=(), description="places of `also_allowed` that also get `headers` and `cookies`; without it only `base_url`"
    )
    allow_private: bool = Field(
        default=False, description="true: its names may resolve to addresses that are not public, as in a private network"
    )
    discover: Discover | None = Field(default=None, description="watch what the index page lists, too")
    forums: tuple[ForumId, ...] = Field(default=(), validate_default=True, description="ids of the forums to watch")
    names: dict[ForumId, str] = Field(
        default={}, description="names of the forums, by id; where `discover` reads the index, they are taken from there"
    )
    pages: Pages = Field(description="structure of its pages")
    limits: ScanLimits = ScanLimits()
    schedule: Schedule = Schedule()
    politeness: Politeness = Politeness()
    raw: Raw = Raw()
    breaker: BreakerOptions = BreakerOptions()
    headers: dict[str, SecretStr] = Field(
        default={}, description="headers of each request to the place of `base_url`; secrets as `${NAME}`"
    )
    cookies: dict[str, SecretStr] = Field(
        default={}, description="cookies of each request to the place of `base_url`, each as `${NAME}`"
    )
    drop_query: tuple[str, ...] = Field(default=(), description="parameters cut from URLs that are read, as session ids")
    language: str | None = Field(
        default=None, description="language of its dates, as `de`, `en-GB` or `zh`; without it all are tried"
    )
    time_zone: str = Field(default="UTC", description="time zone of dates without one, as `Europe/Berlin`")
    recognise: Recognise = Field(
        default=Recognise(), description="profiles only: marks by which `trawl sites new` recognises the software"
    )

    @field_validator("base_url", "also_allowed", "send_headers_to")
    @classmethod
    def _no_password(cls, value: HttpUrl | tuple[HttpUrl, ...]) -> HttpUrl | tuple[HttpUrl, ...]:
        if any(url.password for url in (value if isinstance(value, tuple) else (value,))):
            raise ValueError("must not hold a password: it would be in every request and log; use headers.Authorization")
        return value

    @field_validator("send_headers_to")
    @classmethod
    def _sends_where_it_may(cls, urls: tuple[HttpUrl, ...], info: ValidationInfo) -> tuple[HttpUrl, ...]:
        allowed = {place_of(str(url)) for url in info.data.get("also_allowed", ())}
        is_encrypted = (base := info.data.get("base_url")) is not None and base.scheme == "https"
        for url in urls:
            if place_of(str(url)) not in allowed:
                raise ValueError(f"{url} is not among also_allowed: only what may be fetched can get headers; add it there, too")
            if is_encrypted and url.scheme == "http":
                raise ValueError(f"{url} would get in the clear what base_url gets encrypted: write it with https")
        return urls

    @field_validator("language")
    @classmethod
    def _language(cls, language: str | None) -> str | None:
        return None if language is None else check_language(language)

    @field_validator("time_zone")
    @classmethod
    def _time_zone(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            raise ValueError("is not a time zone: write one as `Europe/Berlin`, or `UTC`") from None
        return name

    @field_validator("forums")
    @classmethod
    def _watches_something(cls, forums: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if not forums and info.data.get("discover") is None:
            raise ValueError('there is nothing to watch: name forums, as in forums = ["news"], or add [discover]')
        return tuple(dict.fromkeys(forums))

    @field_validator("pages")
    @classmethod
    def _can_discover(cls, pages: Pages, info: ValidationInfo) -> Pages:
        if info.data.get("discover") is not None and pages.index is None:
            raise ValueError("discover needs [pages.index], the page that lists the forums")
        return pages

    @field_validator("pages")
    @classmethod
    def _knows_addresses(cls, pages: Pages) -> Pages:
        for kind, page in (("thread", pages.thread), ("comments", pages.comments), ("more", pages.more)):
            if page is not None and "url" in page.names and pages.list.fields.url is None:
                raise ValueError(f"{kind}.url has {{url}}, the thread's address in the list, but list.fields has no url")
        return pages

    @field_validator("pages")
    @classmethod
    def _knows_parts(cls, pages: Pages) -> Pages:
        of_lists = {"thread": pages.list.fields.id, "forum": pages.index.fields.id if pages.index else None}
        for kind in get_args(PageKind):
            for name in getattr(getattr(pages, kind), "parts", ()):
                if (field := of_lists.get(name)) is None or field.join is None:
                    where = {"thread": "list", "forum": "index"}.get(name)
                    has = f"pages.{where}.fields.id has no `join`" if where else "only a thread's or a forum's id has parts"
                    raise ValueError(f"{kind} has {{{name}.…}}, a part of an id, but {has}")
        return pages

    @field_validator("pages")
    @classmethod
    def _can_read_on_from_recent(cls, pages: Pages) -> Pages:
        if (fields := pages.recent and pages.recent.fields) is None:
            return pages
        needs = (("url", "the thread's address in the list", "url"), ("forum", "the thread's forum", "forum_id"))
        for kind, page in (("thread", pages.thread), ("comments", pages.comments)):
            names = page.names if page is not None else ()
            for place, what, field in needs:
                if place in names and getattr(fields, field) is None:
                    raise ValueError(f"{kind}.url has {{{place}}}, {what}, but recent.fields has no {field}")
        return pages

    @property
    def scan_budget_per_hour(self) -> float:
        """Requests for which scans and checks are planned: no plan asks for more than the site gives."""
        return min(self.schedule.scan_budget_per_hour, self.politeness.per_hour or math.inf)

    @cached_property
    def places(self) -> frozenset[Place]:
        """Return the place of the site, and the others that may be fetched for it."""
        return frozenset(place_of(str(url)) for url in (self.base_url, *self.also_allowed))

    @cached_property
    def trusted_places(self) -> frozenset[Place]:
        """Return the `places` that get its headers and cookies."""
        return frozenset(place_of(str(url)) for url in (self.base_url, *self.send_headers_to))

    def page(self, kind: PageKind) -> Page:
        """Return the file's table for pages of this kind. Raises SiteError where there is none."""
        return self.page_of(kind, Page)

    def page_of(self, kind: PageKind, model: type[Spec]) -> Spec:
        """Return the file's table for pages of this kind, as its model. Raises SiteError where there is none."""
        page = getattr(self.pages, kind)
        if not isinstance(page, model):
            raise SiteError(f"site {self.name!r} has no [pages.{kind}]")
        return page

    def url(
        self,
        kind: PageKind,
        *,
        forum: str = "",
        thread: str = "",
        number: int = 1,
        cursor: str | None = None,
        url: str | None = None,
        comment: str = "",
        more: str = "",
    ) -> str:
        """Return the address of a page: `number` from 1, `cursor` from the page before, `url`: the thread's own from the list. A
        page that is requested with a body has it behind a `#`; `asking` makes a request of it. Raises SiteError where an id
        lacks parts that the address needs.
        """
        page = self.page(kind)
        template, per_page = page.url, None
        if isinstance(page, RowsPage):
            per_page = page.per_page
            if page.first_url is not None and number == 1 and cursor is None:
                template = page.first_url
        values: dict[str, Any] = {
            "forum": forum,
            "thread": thread,
            "page": number,
            "page0": number - 1,
            "offset": (number - 1) * (per_page or 0),
            "per_page": per_page or "",
            "cursor": cursor or "",
            "url": url or "",
            "comment": comment,
            "more": more,
        }
        try:
            filled = page_requests.fill(template, values, self._joins)
            body = page.body.fill(values, self._joins) if page.body is not None else None
        except ValueError as error:
            raise SiteError(f"site {self.name!r}: pages.{kind}: {error}") from None
        whole = str(self.base_url).rstrip("/") + filled if filled.startswith("/") else filled
        return whole if body is None else with_body(whole, body)

    def asking(self, kind: PageKind, address: str) -> PageRequest:
        """Return the request of the page at an address."""
        page = self.page(kind)
        if not page.is_posted:
            return PageRequest(url=address, more_headers=page.headers)
        (url, body), form = apart(address), page.body
        content_type = form.content_type if form else None
        return PageRequest(url=url, method="POST", body=body, content_type=content_type, more_headers=page.headers)

    @cached_property
    def _joins(self) -> dict[str, str]:
        """Return the separators of ids with several parts, by their names in templates."""
        of_lists = {"thread": self.pages.list.fields.id, "forum": self.pages.index.fields.id if self.pages.index else None}
        return {name: field.join for name, field in of_lists.items() if field is not None and field.join is not None}

    def list_url(self, forum: str) -> str:
        """Return the URL of a forum's first list page."""
        return self.url("list", forum=forum)
