"""The spider of a service that is declared with another name, or other keys, than its class has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scrapy import Spider

from redis_components.spiders import RedisMixin
from workers.process.item_consumers import NO_CONSUMER

JOB_IDLE_S = 2
"""After so long without anything to do, in all of its crawlers, a job of a spider that is fed from Redis is over."""


@dataclass(frozen=True, kw_only=True)
class ServiceSpider:
    """A service's declarations for its spider; "" where the class decides."""

    loads: str = ""
    consumer: str = ""
    start_key: str = ""
    ends: bool = False
    """End when the whole crawl has nothing to do: a spider that is fed from Redis would wait for start tasks for ever."""

    def named(self, service: str, found: type[Spider]) -> type[Spider]:
        """Return the class itself, or a subclass with the service's name: the keys of a crawl have the spider's name in them."""
        changed: dict[str, Any] = {}
        if self.loads:
            changed["name"] = service
        if self.consumer:
            changed["item_consumer"] = "" if self.consumer == NO_CONSUMER else self.consumer
        if self.start_key and getattr(found, "redis_key", None):
            changed["redis_key"] = self.start_key
        if self.ends and issubclass(found, RedisMixin) and not found.max_idle_time:
            changed["max_idle_time"] = JOB_IDLE_S
        return type(found.__name__, (found,), {**changed, "__module__": found.__module__}) if changed else found
