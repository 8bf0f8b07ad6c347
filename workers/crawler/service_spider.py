"""The spider of a service that is declared with another name, or other keys, than its class has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scrapy import Spider

from workers.process.item_consumers import NO_CONSUMER


@dataclass(frozen=True, kw_only=True)
class ServiceSpider:
    """What a service declares of its spider; "" where the class decides."""

    loads: str = ""
    consumer: str = ""
    start_key: str = ""

    def named(self, service: str, found: type[Spider]) -> type[Spider]:
        """The class itself, or a subclass that is called as the service: the keys of a crawl have the spider's name in them."""
        changed: dict[str, Any] = {}
        if self.loads:
            changed["name"] = service
        if self.consumer:
            changed["item_consumer"] = "" if self.consumer == NO_CONSUMER else self.consumer
        if self.start_key and getattr(found, "redis_key", None):
            changed["redis_key"] = self.start_key
        return type(found.__name__, (found,), {**changed, "__module__": found.__module__}) if changed else found
