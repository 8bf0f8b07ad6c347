"""Values of options: NAME=VALUE, durations, times; the keys of a service's items."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import redis

from redis_components.admin.crawl_records import CrawlRecords
from redis_components.errors import ConfigError
from redis_components.keys import CrawlKeys
from workers.fleet.consumers import crawl_keys
from workers.fleet.sizes import service_in


def pairs(option: str, words: Iterable[str] | None) -> dict[str, str]:
    """Return `{"k": "v"}` for `["k=v"]`. Raises ConfigError that names the option."""
    found = {}
    for word in words or ():
        name, equals, value = word.partition("=")
        if not (name and equals):
            raise ConfigError(f"{option} {word!r} must have the form NAME=VALUE")
        found[name] = value
    return found


_SPAN = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*([smhd])?", re.ASCII)
_UNITS = {None: 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def parse_span(text: str, *, option: str = "--every") -> float:
    """Return the seconds in `10s`, `5m`, `2h`, `1d`, or a number of seconds. Raises ConfigError."""
    if not (span := _SPAN.fullmatch(text.strip())):
        raise ConfigError(f"{option} {text!r} is not a duration: write 10s, 5m, 2h or 1d")
    return float(span[1]) * _UNITS[span[2]]


def parse_since(text: str, now: datetime | None = None, *, option: str = "--since") -> datetime:
    """Return the moment of `2h`, `2026-01-31` or `2026-01-31T12:00:00Z`; without a zone it is UTC. Raises ConfigError."""
    try:
        if (age := _SPAN.fullmatch(text)) and age[2]:
            return (now or datetime.now(UTC)) - timedelta(seconds=float(age[1]) * _UNITS[age[2]])
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        forms = "2h (s, m, h, d), 2026-01-31 or 2026-01-31T12:00:00Z"
        raise ConfigError(f"{option} {text!r} is not a time: write {forms}") from None


def item_keys(client: redis.Redis, service: str) -> CrawlKeys:
    """Return the keys of a service's items. Raises ConfigError and `redis.RedisError`."""
    return crawl_keys(service, CrawlRecords(client).of(service), service_in(client, service))
