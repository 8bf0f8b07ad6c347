"""Items into the shared item stream, in the exchange that acks their request or an earlier one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import msgspec
from scrapy.utils.python import to_bytes
from scrapy.utils.serialize import ScrapyJSONEncoder

from .engine import frontier_of
from .loading import object_of
from .refusal import is_refused, refusing

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler

    from .frontier import Frontier

_fast = msgspec.json.Encoder().encode
_exact = ScrapyJSONEncoder().encode
_SCALARS = frozenset({str, int, bool, type(None)})


def _is_plain(value: Any) -> bool:
    """Whether JSON has a form for every part of `value`, about which all encoders agree."""
    kind = type(value)
    if kind in _SCALARS:
        return True
    if kind is dict:
        for key, part in value.items():  # noqa: SIM110  # a generator takes twice as long
            if type(key) is not str or not (type(part) in _SCALARS or _is_plain(part)):
                return False
        return True
    if kind is list:
        for part in value:  # noqa: SIM110  # as above
            if not (type(part) in _SCALARS or _is_plain(part)):
                return False
        return True
    return kind is float and math.isfinite(value)


def default_serialize(item: Any) -> str | bytes:
    """JSON that reads back as that of Scrapy's own encoder, which writes whatever is not plain; plain items take a third of its
    time.
    """
    try:
        if _is_plain(item):
            return _fast(item)
    except (ValueError, TypeError, OverflowError, RecursionError):  # lone surrogates, integers beyond 64 bits
        pass
    return _exact(item)


class RedisPipeline:
    """Appends each item, serialized, to the list `REDIS_ITEMS_KEY` (default `%(spider)s:items`)."""

    _frontier: Frontier

    def __init__(self, crawler: Crawler, serialize_func: Callable[[Any], str | bytes] = default_serialize) -> None:
        self._crawler = crawler
        self.serialize = serialize_func

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Nothing is read yet: a setting that is wrong can end the crawl in good order only once the spider is opened."""
        return cls(crawler)

    def open_spider(self) -> None:
        """Reads REDIS_ITEMS_SERIALIZER (dotted path of a callable: item -> text or bytes)."""
        if is_refused(self._crawler):
            return
        with refusing(self._crawler):
            self.serialize = object_of(self._crawler.settings, "REDIS_ITEMS_SERIALIZER") or self.serialize
            self._frontier = frontier_of(self._crawler)

    def process_item(self, item: Any) -> Any:
        """Put the item into the outbox; it is in Redis before its request is acked."""
        self._frontier.add_item(to_bytes(self.serialize(item)))
        return item
