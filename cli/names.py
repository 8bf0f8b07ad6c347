"""Names in arguments: a service (`forum_detail`), a slot (`forum_detail/2`), a spider or a site; checked, with what was meant."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import redis

from fleet_operations.consumers.declared import crawl_keys
from redis_components.errors import ConfigError, unknown_name
from redis_components.keys import CrawlKeys, CrawlRecords
from workers.fleet.sizes import desired_fleet, service_in
from workers.state.beats import SPAN, UNITS
from workers.state.records import parse_slot
from workers.state.registry import Registry

from .access import running_url

if TYPE_CHECKING:
    from forums.sites.http.fetch import VisitLimits
    from forums.storage import Database
    from redis_components.migration import Project


def service_or_slot(text: str) -> tuple[str, int | None]:
    """Return `("forum_detail", 2)` for `forum_detail/2`, `("forum_detail", None)` for `forum_detail`. Raises ConfigError."""
    if text and "/" not in text:
        return text, None
    try:
        return parse_slot(text)
    except ValueError:
        raise ConfigError(f"{text!r} is neither a service nor a slot: write for example forum_detail or forum_detail/2") from None


def check_spiders(client: redis.Redis, names: Collection[str]) -> None:
    """Raise ConfigError for a spider that neither the fleet, its records nor this project has, and that has no keys."""
    known = known_services(client) if names else set()
    for name in names:
        if name not in known and not _has_keys(client, name) and name not in (here := project_spiders()):
            raise unknown_name("spider", name, known | here)


def check_site(site: str, *, stored: Database | None = None, client: redis.Redis | None = None) -> None:
    """Raise ConfigError for a site that has neither a file nor rows in `stored`, nor records in `client`."""
    from sqlalchemy import select

    from forums.sites import site_names

    known = set(site_names())
    if stored is not None and site not in known:
        from forums.storage.schema.tables import sites

        known |= {row.name for row in stored.stream(select(sites.c.name))}
    if site not in known and not (client is not None and _has_records(client, site)):
        raise unknown_name("site", site, known)


def check_import(client: redis.Redis, spider: str, project: Project) -> None:
    """Raise ConfigError where scrapy-redis has left no key of this spider and the project has no spider of that name."""
    theirs = project.keys.theirs
    keys = [theirs.requests, theirs.dupefilter, *(key.theirs for key in project.start_keys)]
    if not client.exists(*keys) and spider not in (here := project_spiders()):
        raise unknown_name("spider", spider, here)


def known_services(client: redis.Redis) -> set[str]:
    """Return every service that the fleet has or had."""
    registry = Registry(client)
    return {*desired_fleet(registry), *CrawlRecords(client).all(), *(one.spider for one in registry.crawlers())}


def _has_keys(client: redis.Redis, spider: str) -> bool:
    keys = CrawlKeys.for_spider(spider)
    named = (keys.requests, keys.dupefilter, keys.items, keys.dead(), keys.bad_items(), keys.start_tasks(), keys.stats_hash())
    return bool(client.exists(*named))


def _has_records(client: redis.Redis, site: str) -> bool:
    from forums.state.keys import ForumStates

    return bool(ForumStates(client).all(site))


def project_spiders() -> set[str]:
    """Return the spiders of the Scrapy project in the current folder."""
    from scrapy.spiderloader import get_spider_loader
    from scrapy.utils.project import get_project_settings, inside_project

    try:
        return set(get_spider_loader(get_project_settings()).list()) if inside_project() else set()
    except Exception:  # a module of the project that cannot be imported: its spiders are not known
        return set()


def visit_limits(url: str, site: str | None = None) -> VisitLimits | None:
    """Return the limits for a command that fetches a page; None where no Redis is running: then no crawler visits the site.

    Of the site at `url`, which a site file may name.
    """
    from forum_reader.definition.page_requests import place_of
    from forums.sites import load_all
    from forums.sites.http.fetch import VisitLimits
    from redis_components.connection import connect
    from redis_components.keys import limits_key
    from redis_components.politeness.limits import LanePermits

    if (running := running_url()) is None:
        return None
    known = next((one for one in load_all()[0] if one.name == site or (not site and place_of(url) in one.places)), None)
    name, lane = (known.name, known.politeness.lane) if known else (site, None)
    return VisitLimits(LanePermits(connect(running), limits_key()), name, lane)


def parse_since(text: str, now: datetime | None = None, *, option: str = "--since") -> datetime:
    """Return the moment of `2h`, `2026-01-31` or `2026-01-31T12:00:00Z`; without a zone it is UTC. Raises ConfigError."""
    try:
        if (age := SPAN.fullmatch(text)) and age[2]:
            return (now or datetime.now(UTC)) - timedelta(seconds=float(age[1]) * UNITS[age[2]])
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        forms = "2h (s, m, h, d), 2026-01-31 or 2026-01-31T12:00:00Z"
        raise ConfigError(f"{option} {text!r} is not a time: write {forms}") from None


def item_keys(client: redis.Redis, service: str) -> CrawlKeys:
    """Return the keys of a service's items. Raises ConfigError and `redis.RedisError`."""
    return crawl_keys(service, CrawlRecords(client).of(service), service_in(client, service))
