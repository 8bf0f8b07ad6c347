"""Which services size themselves, between which bounds, and what is remembered for the next decision (`workers.autoscaler`)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

import msgspec
import redis

from .answers import as_bytes, as_text
from .keys import FleetKeys
from .scripts import script


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What an operator wants of a service that sizes itself."""

    min: int
    max: int
    target_s: float = 60.0  # what waits shall be done within this time


@dataclass(frozen=True, kw_only=True)
class Trial:
    """How a service fared before it was made larger: a larger one has to do better."""

    crew: int
    rate: float  # requests finished per second
    per_crawler: float


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What the next decision needs of those before. Times are Redis's, in epoch seconds; rates in requests per second."""

    at: float | None = None  # the last sample
    crew: int = 0  # crawlers at work through the present window
    since: float = 0.0  # when the window began
    acked_then: int = 0
    backlog_then: int = 0
    dry: bool = False  # within the window the queue was empty at least once: crawlers had nothing to do
    fresh: bool = False  # a window of the present crew has been measured to its end
    per_crawler: float | None = None  # finished by one crawler that always has something to do; None: not known yet
    inflow: float | None = None  # new requests, smoothed
    trial: Trial | None = None
    ceiling: int | None = None  # more crawlers than this did not do more
    ceiling_at: float = 0.0
    ceiling_s: float = 0.0  # how long that is believed
    low_since: float | None = None  # since when fewer would do
    low_peak: int = 0  # the most that would have been wanted meanwhile
    why: str = ""  # the last decision, for people


@dataclass(frozen=True, kw_only=True)
class Autoscaled:
    """A service that sizes itself."""

    policy: Policy
    memory: Memory = field(default_factory=Memory)

    def to_json(self) -> str:
        """One line."""
        return msgspec.json.encode(asdict(self)).decode()


class Autoscaling:
    """The services that size themselves, in Redis. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis, keys: FleetKeys | None = None) -> None:
        self._client = client
        self._key = (keys or FleetKeys()).autoscale()
        self._found: dict[str, bytes] = {}

    def all(self) -> dict[str, Autoscaled]:
        """By service; what cannot be read is left out."""
        self._found = {as_text(service): as_bytes(raw) for service, raw in self._client.hgetall(self._key).items()}
        services = {}
        for service, raw in sorted(self._found.items()):
            try:
                services[service] = msgspec.json.decode(raw, type=Autoscaled)
            except ValueError:
                continue
        return services

    def set(self, service: str, policy: Policy) -> None:
        """The service sizes itself from now on; what was learnt under an older policy is forgotten."""
        self._client.hset(self._key, service, Autoscaled(policy=policy).to_json())

    def off(self, service: str) -> bool:
        """The service keeps the size that it has; False when it did not size itself."""
        return bool(self._client.hdel(self._key, service))

    def remember(self, service: str, autoscaled: Autoscaled) -> bool:
        """Put it in the place of what `all` has read; False, and nothing is changed, when somebody else has written meanwhile."""
        args = {"field": service, "expected": self._found.get(service, b""), "value": autoscaled.to_json()}
        return bool(script("swap")(self._client, {"notes": self._key}, args))
