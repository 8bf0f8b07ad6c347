"""Items into the shared item stream, in the exchange that acks their request or an earlier one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from scrapy.utils.misc import load_object
from scrapy.utils.python import to_bytes
from scrapy.utils.serialize import ScrapyJSONEncoder

from .engine import frontier_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from .frontier import Frontier

default_serialize = ScrapyJSONEncoder().encode


class RedisPipeline:
    """Appends each item, serialized, to the list `REDIS_ITEMS_KEY` (default `%(spider)s:items`)."""

    def __init__(self, frontier: Frontier, serialize_func: Callable[[Any], str | bytes] = default_serialize) -> None:
        self._frontier = frontier
        self.serialize = serialize_func

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Reads REDIS_ITEMS_SERIALIZER (dotted path of a callable: item -> text or bytes)."""
        serializer = crawler.settings.get("REDIS_ITEMS_SERIALIZER")
        return cls(frontier_of(crawler), load_object(serializer) if serializer else default_serialize)

    def process_item(self, item: Any) -> Any:
        """Put the item into the outbox; it is in Redis before its request is acked."""
        self._frontier.add_item(to_bytes(self.serialize(item)))
        return item
