"""Services as they are declared: which spider of which project runs, and with what. Those that were declared at run time are in
Redis, so that every node sees them; `workers.fleet.sizes` reads those of a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
import redis

from redis_components.server.untrusted_values import Amount, Count, Epoch, JsonRecord, RecordStore, Size
from workers.state.keys import FleetKeys

SIGNED = "service"
"""Its records name settings, which load classes and write files, and where items go."""
MAX_WAITING = 100_000
"""`max_waiting` of a service that does not name it, from its declaration on."""
Positive = Annotated[float, msgspec.Meta(gt=0, le=1e9)]


@dataclass(frozen=True, kw_only=True)
class ServiceRecord(JsonRecord):
    """The declaration of a service. Every field may be left out."""

    spider: str = ""
    """Name of the spider in its project; "": the service's name. The crawl's keys are named after the service."""
    project: str = ""
    """Module of the project's Scrapy settings, as in SCRAPY_SETTINGS_MODULE; "": the node's own project."""
    size: Size = 1
    """Crawlers, unless `trawl scale` sets another number."""
    arguments: dict[str, Any] = field(default_factory=dict)
    """Of the spider, as with `-a`."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Scrapy settings that differ from the project's, as with `-s`."""
    memory_soft_mb: Positive | None = None
    memory_hard_mb: Positive | None = None
    max_age: Positive | None = None
    """Seconds after which a crawler is replaced."""
    max_pages: Annotated[int, msgspec.Meta(gt=0, le=10**12)] | None = None
    """Pages after which a crawler is replaced."""
    max_waiting: Count = 0
    """Start tasks that may wait, from which on seeders are refused; 0: any number, as of declarations from before this field."""
    min_items_per_minute: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 0.0
    """Items a minute below which the alert TrawlTooFewItems fires; 0: never."""
    start_key: str = ""
    items_key: str = ""
    consumer: str = ""
    """`none`, `forum_writer`, or where `trawl items consume` writes the items; "": what the spider declares."""
    key: str = ""
    """Field of an item by which the row of a database is found and replaced; "": each item is a row."""

    def scrapy_settings(self) -> dict[str, str]:
        """Return the settings of its crawlers, as texts of a command line."""
        limits = {
            "CRAWLER_MEMORY_SOFT_MB": self.memory_soft_mb,
            "CRAWLER_MEMORY_HARD_MB": self.memory_hard_mb,
            "CRAWLER_MAX_AGE": self.max_age,
            "CRAWLER_MAX_PAGES": self.max_pages,
            "REDIS_START_URLS_KEY": self.start_key or None,
            "REDIS_ITEMS_KEY": self.items_key or None,
        }
        named = {name: value for name, value in limits.items() if value is not None}
        return as_texts({**named, **{name: _as_scrapy_reads(value) for name, value in self.settings.items()}})


class Services(RecordStore[ServiceRecord]):
    """The services that were declared at run time. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis) -> None:
        super().__init__(client, FleetKeys().services(), ServiceRecord, signed=SIGNED)

    def declare(self, service: str, record: ServiceRecord) -> None:
        """Declare a service, or declare it differently."""
        self._client.hset(self._key, service, self.encoded(service, record))

    def remove(self, service: str) -> bool:
        """Forget a declaration; False where there was none. Its queue and items stay."""
        return bool(self._client.hdel(self._key, service))


def _as_scrapy_reads(value: Any) -> Any:
    """Return a list of plain values as the text from which Scrapy's `getlist` makes it again: names with commas, not JSON."""
    plain = isinstance(value, list) and value and all(isinstance(one, str | int | float) and "," not in str(one) for one in value)
    return ",".join(map(str, value)) if plain else value


def as_texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Return values as a command line has them: texts as they are, everything else as JSON."""
    return {name: one if isinstance(one, str) else msgspec.json.encode(one).decode() for name, one in values.items()}


SIGNED_VERSION = "version"


@dataclass(frozen=True, kw_only=True)
class Version:
    """One version of a project: a wheel in the folder of wheels. Nodes install it only where its digest is this one."""

    name: str
    """The first digits of the digest: the same content is the same version."""
    file: str
    """Name of the wheel."""
    digest: str
    """SHA-256 of it, in hexadecimal."""
    project: str
    """Module of the Scrapy settings in it."""
    at: Epoch = 0.0
    by: str = ""
    note: str = ""
    """Why it was rolled back, where it was."""
    content: str = ""
    """Digest of its package's files, also where another build has made the wheel; "" where that is not known."""


@dataclass(frozen=True, kw_only=True)
class Deployment(JsonRecord):
    """The versions of one service."""

    MOST = 256 * 1024

    current: str = ""
    """The version that crawlers are launched with; "": what the nodes have installed themselves."""
    previous: str = ""
    versions: tuple[Version, ...] = ()
    """The newest last."""
    ran: tuple[str, ...] = ()
    """Those that are the project's folder as crawlers were launched from it before the first deploy, the newest last."""

    def of(self, name: str) -> Version | None:
        """Return one version."""
        return next((one for one in self.versions if one.name == name), None)

    @property
    def now(self) -> Version | None:
        """The current one."""
        return self.of(self.current) if self.current else None

    def before(self, name: str) -> str:
        """Return the version that crawlers have before they get `name`: the current one, else their folder as it was with
        another content; "" where that was not kept.
        """
        new = self.of(name)
        kept = (one for one in map(self.of, reversed(self.ran)) if one and new and one.content != new.content)
        return self.current or next((one.name for one in kept), "")


class Deployments(RecordStore[Deployment]):
    """The versions of the fleet's services. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis) -> None:
        super().__init__(client, FleetKeys().versions(), Deployment, signed=SIGNED_VERSION)

    def of(self, service: str) -> Deployment:
        """Return the deployment of a service; an empty one where it was never deployed."""
        return self.get(service) or Deployment()

    def edit(self, service: str, edit: Callable[[Deployment], Deployment]) -> None:
        """Change the deployment, also of a service that was never deployed. Raises the errors of `edit`."""
        self.change(service, lambda now: edit(now or Deployment()))


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The operator's policy for a service that sizes itself."""

    min: Size
    max: Size
    target_s: Amount = 60.0  # what waits shall be done within this time


@dataclass(frozen=True, kw_only=True)
class Memory:
    """The measurements that the next decision needs. Times are Redis's, in epoch seconds; rates in requests per second."""

    at: Epoch | None = None  # the last sample
    crew: Count = 0  # crawlers at work through the present window
    since: Epoch = 0.0  # when the window began
    acked_then: Count = 0
    backlog_then: Count = 0
    dry: bool = False  # within the window the queue was empty at least once: crawlers had nothing to do
    fresh: bool = False  # a window of the present crew has been measured to its end
    per_crawler: Amount | None = None  # finished by one crawler that always has something to do; None: not known yet
    inflow: float | None = None  # new requests, smoothed
    low_since: Epoch | None = None  # since when fewer would do
    low_peak: Count = 0  # the most that would have been wanted meanwhile
    why: str = ""  # the last decision, for people


@dataclass(frozen=True, kw_only=True)
class Autoscaled(JsonRecord):
    """A service that sizes itself."""

    policy: Policy
    memory: Memory = field(default_factory=Memory)


class Autoscaling(RecordStore[Autoscaled]):
    """The services that size themselves, in Redis. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis) -> None:
        super().__init__(client, FleetKeys().autoscale(), Autoscaled)

    def set(self, service: str, policy: Policy) -> None:
        """Let the service size itself from now on; measurements under an older policy are forgotten."""
        self._client.hset(self._key, service, Autoscaled(policy=policy).to_json())

    def off(self, service: str) -> bool:
        """Let the service keep the size that it has; False when it did not size itself."""
        return bool(self._client.hdel(self._key, service))
