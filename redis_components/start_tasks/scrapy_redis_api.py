"""scrapy-redis's way to start tasks, in its names: batches popped from Redis while the reactor waits, when the spider is idle.

A popped task is gone when its process dies before the requests are stored. `RedisMixin` leases instead; this is what runs
outside of a crawl, under a scheduler other than ours, and for a spider that fetches in its own way.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.exceptions import CloseSpider, DontCloseSpider

from redis_components import defaults
from redis_components.keys import filled

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings


logger = logging.getLogger(__name__)


class SynchronousTasks:
    """The methods by which scrapy-redis's `RedisMixin` fetches start tasks, each open to be overridden."""

    name: str
    crawler: Crawler
    redis_key: Any = None
    """Key of the start tasks, with `%(name)s` for the spider's; or a list of keys, the most urgent first. A key after setup."""
    redis_batch_size: Any = None
    redis_key_check_interval: Any = None
    server: Any = None
    spider_idle_start_time: int
    max_idle_time: Any = None
    fetch_data: Callable[[str, int], Iterable[bytes]]
    """Removes up to that number of start tasks from a key."""
    count_size: Callable[[str], int]
    """Number of start tasks in a key."""
    _redis_keys: list[str] | None = None
    _last_priority_scan: float = 0

    def make_request_from_data(self, data: bytes) -> Request | Iterable[Request] | None:
        """Return the request or requests of a start task."""
        raise NotImplementedError

    def pop_list_queue(self, redis_key: str, batch_size: int) -> list[bytes]:
        """Remove the first `batch_size` tasks of a list."""
        with self.server.pipeline() as pipe:
            pipe.lrange(redis_key, 0, batch_size - 1)
            pipe.ltrim(redis_key, batch_size, -1)
            tasks: list[bytes] = pipe.execute()[0]
        return tasks

    def pop_priority_queue(self, redis_key: str, batch_size: int) -> list[bytes]:
        """Remove the `batch_size` tasks of a zset with the highest scores."""
        with self.server.pipeline() as pipe:
            pipe.zrevrange(redis_key, 0, batch_size - 1)
            pipe.zremrangebyrank(redis_key, -batch_size, -1)
            tasks: list[bytes] = pipe.execute()[0]
        return tasks

    def next_requests(self) -> Iterator[Request]:
        """Yield the requests of one batch of start tasks. One that cannot be parsed is logged; the others are not affected."""
        self._maybe_check_priority_scan()
        for data in self.fetch_data(self.redis_key, self.redis_batch_size):
            try:
                made = self.make_request_from_data(data)
                requests = made if isinstance(made, Iterable) else [made] if made else []
                yield from requests
            except CloseSpider:
                raise
            except Exception:  # a user's method may raise anything on foreign data
                logger.exception("start task %.200r is lost: it cannot be understood", data)

    def schedule_next_requests(self) -> None:
        """Hand `next_requests()` to the engine."""
        engine = self.crawler.engine
        assert engine is not None
        for request in self.next_requests():
            engine.crawl(request)

    def _fetch_when_idle(self) -> None:
        """Fetch start tasks on the idle signal; raises DontCloseSpider unless no task was seen for `max_idle_time` seconds."""
        self._maybe_check_priority_scan()
        if self._any_key_has_items():
            self.spider_idle_start_time = int(time.time())
        self.schedule_next_requests()
        if not self.max_idle_time or int(time.time()) - self.spider_idle_start_time < self.max_idle_time:
            raise DontCloseSpider

    # Several start keys, the most urgent first

    def _normalize_redis_key(self, redis_key: Any) -> tuple[str, list[str] | None]:
        """Return the key to begin with, and all keys where several may be given. Raises ValueError for an empty one, ConfigError
        for a wrong pattern.
        """
        if isinstance(redis_key, str):
            key = filled(redis_key, self.name)
            if not key.strip():
                raise ValueError("redis_key must not be empty")
            return key, None
        if not isinstance(redis_key, (list, tuple)):
            raise ValueError(f"redis_key must be a key or a list of keys, not {redis_key!r}")
        keys = list(dict.fromkeys(filled(key, self.name).strip() for key in redis_key))
        if not keys:
            raise ValueError("redis_key list is empty after normalization")
        if "" in keys:
            raise ValueError("redis_key must not be empty")
        return keys[0], keys

    def _is_multi_key_mode(self) -> bool:
        return bool(self._redis_keys)

    def _any_key_has_items(self) -> bool:
        return any(self.count_size(key) > 0 for key in self._redis_keys or [self.redis_key])

    def _select_priority_key(self) -> str | None:
        """Return the most urgent key that has tasks."""
        return next((key for key in self._redis_keys or () if self.count_size(key) > 0), None)

    def _maybe_switch_to_higher_priority_key(self) -> None:
        keys, found = self._redis_keys or [], self._select_priority_key()
        if found is not None and keys.index(found) < keys.index(self.redis_key):
            self.redis_key = found

    def _maybe_check_priority_scan(self) -> None:
        """Go on to another key where this one is empty, or a more urgent one is due to be looked at."""
        if not self._is_multi_key_mode():
            return
        if self.count_size(self.redis_key) == 0:
            self.redis_key = self._select_priority_key() or self.redis_key
        now = time.time()
        if self.redis_key_check_interval and now - self._last_priority_scan >= self.redis_key_check_interval:
            self._maybe_switch_to_higher_priority_key()
            self._last_priority_scan = now

    def _choose_type(self, settings: BaseSettings) -> None:
        """Choose the commands by which `next_requests` pops: from a set, a zset or a list."""
        by_type: Mapping[str, tuple[Any, Any]] = {
            "set": (self.server.spop, self.server.scard),
            "zset": (self.pop_priority_queue, self.server.zcard),
            "list": (self.pop_list_queue, self.server.llen),
        }
        if settings.getbool("REDIS_START_URLS_AS_SET", defaults.START_URLS_AS_SET):
            kind = "set"
        elif settings.getbool("REDIS_START_URLS_AS_ZSET", defaults.START_URLS_AS_ZSET):
            kind = "zset"
        else:
            kind = "list"
        self.fetch_data, self.count_size = by_type[kind]
