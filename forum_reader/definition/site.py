"""Model of a site file."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Annotated, Any, TypeVar, get_args
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
)

from forum_reader.dates.language import check_language
from forum_reader.errors import SiteError
from forum_reader.recognise.recognise import Recognise

from . import page_requests
from .origins import Place, place_of
from .page_requests import PageRequest, apart, with_body
from .pages import Page, PageKind, Pages, RowsPage
from .site_options import BreakerOptions, Discover, Politeness, Raw, ScanLimits, Schedule

_STRICT = ConfigDict(defer_build=True, extra="forbid", frozen=True)

Spec = TypeVar("Spec", bound=Page)
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=100)]
ForumId = Annotated[
    str, Field(pattern=r"^[^\s/][^\s]*$", max_length=200), BeforeValidator(lambda v: str(v) if type(v) is int else v)
]


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
