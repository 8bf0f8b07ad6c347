"""The services that size themselves: their bounds, and the measurements for the next decision
(`workers.fleet.autoscale`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import redis

from redis_components.server.untrusted_values import Amount, Count, Epoch, JsonRecord, RecordStore, Size
from workers.state.keys import FleetKeys


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The operator's policy for a service that sizes itself."""

    min: Size
    max: Size
    target_s: Amount = 60.0  # what waits shall be done within this time


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The rate of a service before it was made larger: the larger one has to do better."""

    crew: Count
    rate: Amount  # requests finished per second
    per_crawler: Amount


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
    trial: Trial | None = None
    ceiling: Count | None = None  # more crawlers than this did not do more
    ceiling_at: Epoch = 0.0
    ceiling_s: Amount = 0.0  # how long that is believed
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
