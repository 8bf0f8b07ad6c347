"""The gate of new pages, as Redis and the outbox allow them. Pure: no clock, no I/O."""

from __future__ import annotations

import logging

from .config import FrontierConfig
from .outbox import Outbox
from .reply import Reply

logger = logging.getLogger(__name__)


class Gate:
    """No page is started while Redis is out of memory, too many items wait, or the crawl is paused (`shut`), nor while the
    outbox is too full (`overflows`).
    """

    def __init__(self, config: FrontierConfig, outbox: Outbox) -> None:
        self.shut = False
        self.full = False
        """Redis is out of memory."""
        self.backed_up = False
        """Too many items wait, or were refused."""
        self._config = config
        self._outbox = outbox
        self.most = config.max_outbox
        """Entries that the outbox may hold; open to the frontier, which compares for each page."""
        self._refused = False

    @property
    def overflows(self) -> bool:
        """The outbox has more entries than allowed."""
        return len(self._outbox.entries) > self.most

    @property
    def refuses(self) -> bool:
        """No page may be started. A caller that was refused is called again by `opened`."""
        if self.shut or self.overflows:
            self.refuse()
        return self._refused

    def refuse(self) -> None:
        """Note that a caller was refused."""
        self._refused = True

    def opened(self) -> bool:
        """Return True if pages may be started again after a refusal; once for each time."""
        if not self._refused or self.shut or self.overflows:
            return False
        self._refused = False
        return True

    def answered(self, reply: Reply, *, paused: bool) -> None:
        """Take the answer of an exchange into account; `paused`: the crawl is."""
        self._notice_memory(full=reply.full)
        self._notice_items(reply)
        self.shut = reply.full or reply.backed_up or paused

    def _notice_memory(self, *, full: bool) -> None:
        was_full, self.full = self.full, full
        if full and not was_full:
            logger.warning(
                "Redis is out of memory (maxmemory): no page is started, what runs is stored; raise maxmemory or make room"
            )
        elif was_full and not full:
            logger.warning("Redis has memory again; the crawl goes on")

    def _notice_items(self, reply: Reply) -> None:
        config, backed_up = self._config, reply.backed_up
        was_backed_up, self.backed_up = self.backed_up, backed_up
        if config.max_items:  # entries of the outbox count, too: pages may make items faster than they are sent to Redis
            self.most = min(config.max_outbox, max(config.concurrency, config.max_items - reply.items))
        keys = config.keys
        if backed_up and not was_backed_up:
            logger.warning(
                "too many items wait in %s or were refused (%s): no page is started until they are consumed, replayed or purged;"
                " the bounds are REDIS_ITEMS_MAX_WAITING = %d and REDIS_ITEMS_MAX_MB = %d",
                keys.item_stream(),
                keys.bad_items(),
                config.max_items,
                config.max_item_mb,
            )
        elif was_backed_up and not backed_up:
            logger.warning("items of %s are taken again; the crawl goes on", keys.item_stream())
