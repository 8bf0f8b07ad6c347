"""Items into the shared item stream, in the exchange that acks their request or an earlier one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import msgspec
from scrapy.utils.python import to_bytes
from scrapy.utils.serialize import ScrapyJSONEncoder

from . import connection, defaults
from .errors import ConfigError, TrawlError
from .frontier.messages import KeyedItem
from .keys import filled
from .scrapy_glue.engine import frontier_of, is_refused, refusing
from .scrapy_glue.internals import in_thread
from .server.names import check_one_slot, crawl_name, namespace_of, prefixed
from .setting_values import object_of
from .utils import bytes_to_str

if TYPE_CHECKING:
    from collections.abc import Callable

    import redis
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from .frontier.frontier import Frontier

_fast = msgspec.json.Encoder().encode
_exact = ScrapyJSONEncoder().encode
_SCALARS = frozenset({str, int, bool, type(None)})


def _is_plain(value: Any) -> bool:
    """Return True if JSON has a form for every part of `value` on which all encoders agree."""
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
    """Return JSON that reads back as that of Scrapy's own encoder, which writes all that is not plain; plain items take a third
    of the time.
    """
    try:
        if _is_plain(item):
            return _fast(item)
    except (ValueError, TypeError, OverflowError, RecursionError):  # lone surrogates, integers beyond 64 bits
        pass
    return _exact(item)


class RedisPipeline:
    """Appends each item, serialized, to the list `REDIS_ITEMS_KEY` (default `%(spider)s:items`).

    In a crawl an item travels with the exchange that acks its page, or an earlier one; also to the lists of an overridden
    `item_key`. An overridden `_process_item` is called in a thread, before the page is acked. Without a crawler, items are
    appended at once.
    """

    def __init__(
        self,
        server: redis.Redis,
        key: str = defaults.PIPELINE_KEY,
        serialize_func: Callable[[Any], str | bytes] = default_serialize,
    ) -> None:
        self.server = server
        self.key = key
        self.serialize = serialize_func
        self._crawler: Crawler | None = None
        self._frontier: Frontier | None = None

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Read REDIS_ITEMS_KEY and REDIS_ITEMS_SERIALIZER (dotted path: item -> text or bytes).

        Raises ConfigError for a serializer that cannot be loaded, and for consumer groups.
        """
        if settings.get("REDIS_ITEMS_GROUPS"):
            raise ConfigError("REDIS_ITEMS_GROUPS: items have no consumer groups any more: unset it, and declare a consumer")
        key = settings.get("REDIS_ITEMS_KEY") or defaults.PIPELINE_KEY
        params: dict[str, Any] = {
            "server": connection.from_settings(settings),
            "key": prefixed(key, namespace_of(settings)),
        }
        if serialize := object_of(settings, "REDIS_ITEMS_SERIALIZER"):
            params["serialize_func"] = serialize
        return cls(**params)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self | RefusedPipeline:
        """Return the pipeline of a crawl; where the settings are wrong, one that ends the crawl with the error."""
        try:
            pipeline = cls.from_settings(crawler.settings)
        except TrawlError as error:
            return RefusedPipeline(crawler, error)
        pipeline._crawler = crawler
        return pipeline

    def open_spider(self) -> None:
        """Join the exchange of this process."""
        if self._crawler is None or is_refused(self._crawler):
            return
        with refusing(self._crawler):
            self._frontier = frontier_of(self._crawler)
        spider = self._crawler.spider
        assert spider is not None
        own_keys = type(self).item_key is not RedisPipeline.item_key
        self._to_stream = not own_keys and self.item_key(None, spider) == self._frontier.config.keys.item_stream()
        self._one_slot = connection.is_cluster(self._crawler.settings)
        self._pushes_itself = type(self)._process_item is not RedisPipeline._process_item

    def process_item(self, item: Any, spider: Spider | None = None) -> Any:
        """Store the item; return it, or an awaitable of it."""
        frontier = self._frontier
        if frontier is None:
            return self._process_item(item, self._spider(spider))
        if self._pushes_itself:
            return in_thread(lambda: self._process_item(item, self._spider(spider)))
        data = to_bytes(self.serialize(item))
        if self._to_stream:
            frontier.add_item(data)
        else:
            frontier.add_keyed_item(KeyedItem(self._own_key(frontier, item, self._spider(spider)), data))
        return item

    def _own_key(self, frontier: Frontier, item: Any, spider: Spider) -> str:
        key: str = bytes_to_str(self.item_key(item, spider))
        if self._one_slot:
            check_one_slot((frontier.config.keys.item_stream(), key), "REDIS_NAMESPACE", f"'{{{crawl_name(spider)}}}'")
        return key

    def _process_item(self, item: Any, spider: Spider) -> Any:
        """Append the item at once."""
        self.server.rpush(self.item_key(item, spider), self.serialize(item))
        return item

    def _spider(self, given: Spider | None) -> Spider:
        spider = given or (self._crawler.spider if self._crawler else None)
        if spider is None:
            raise TypeError(f"{type(self).__name__} knows no spider: give one, or make it by from_crawler(crawler)")
        return spider

    def item_key(self, item: Any, spider: Spider) -> str:  # noqa: ARG002
        """Return the list for `item`. Override it to use several; on a Redis Cluster they have to be in the slot of the crawl."""
        return filled(self.key, crawl_name(spider))


class RefusedPipeline:
    """Ends the crawl with one line, where a setting of the pipeline is wrong: Scrapy can do that in good order only once the
    spider is opened.
    """

    def __init__(self, crawler: Crawler, error: TrawlError) -> None:
        self._crawler = crawler
        self._error = error

    def open_spider(self) -> None:
        """Raise CloseSpider with the error."""
        if not is_refused(self._crawler):
            with refusing(self._crawler):
                raise self._error
