"""A lease while Scrapy works on it: a page, or a start task, with all that lives in this process only.

A request that cannot be stored is in memory and nowhere else. It counts as part of the page it was found on: the page's lease
ends when its last part is finished, so that a crash before that gives the page back, and all that it leads to with it.
"""

from __future__ import annotations

import math
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy import Request

    from redis_components.frontier.frontier import Frontier

    from .page_age import Step

current_page: ContextVar[Page | None] = ContextVar("trawl_page", default=None)
"""The page in work in the running code: set for each page by the scheduler, for each start task by `RedisMixin`.

Scrapy runs the download, the callback and the pipelines of one request in separate asyncio tasks, which inherit it. Without
asyncio (another Twisted reactor) Scrapy's cooperator runs callbacks of all pages in one context, and this stays None there.
"""


def current_lease() -> str:
    """Return the id of the lease in work; "" where that is not known, or it is settled."""
    page = current_page.get()
    return page.lease_id if page is not None else ""


class Page:
    """A leased request (None: a start task), from its lease to its end."""

    __slots__ = (
        "attempts",
        "cut_off",
        "ended",
        "lease_id",
        "parts",
        "reason",
        "request",
        "seen_at",
        "sent",
        "site",
        "steps",
        "until",
    )

    def __init__(
        self,
        lease_id: str,
        request: Request | None = None,
        site: str = "",
        attempts: int = 0,
        until: float = math.inf,
        seen_at: float = 0.0,
        *,
        sent: bool = True,
    ) -> None:
        self.lease_id = lease_id  # "" once it is settled, or not ours any more
        self.request = request
        self.site = site  # whose place it has; "" where places are not counted
        self.attempts = attempts  # processes that died while they worked on it
        self.parts = 1  # itself, and the requests kept in memory that came from it
        self.reason: str | None = None  # why it is given up
        self.cut_off = False  # its output was not read to the end, because the crawl closes
        self.until = until  # s of the frontier's clock from which it is too late to send it
        self.sent = sent  # False: the limits of its site count it, and it was not sent yet
        self.seen_at = seen_at  # s of the frontier's clock: when it was begun, or something was last sent for it
        self.ended = False  # it gave no sign of life for too long: the rest of it is not worked on
        self.steps: dict[Step, None] = {}  # what Scrapy awaits for it now

    def give_up(self, request: Request, reason: str) -> None:
        """Let the lease end among the dead ones, because `request`, a part of this page, failed."""
        self.reason = reason if request is self.request else f"{request}, found here and kept in memory: {reason}"

    def finish_part(self, frontier: Frontier) -> bool:
        """Finish one part. After the last one the lease ends: released (edge d) where its output was cut off or it was not sent,
        buried (f) where it is given up, else acked (c). Return True if it was the last one of a lease that is still ours.
        """
        self.parts -= 1
        if self.parts or not self.lease_id:
            return False
        if self.cut_off:
            frontier.release(self.lease_id)
        elif self.reason is not None:
            frontier.bury(self.lease_id, self.reason)
        else:
            frontier.ack(self.lease_id)
        self.lease_id = ""
        return True

    def release(self, frontier: Frontier) -> None:
        """Give the lease back although parts are unfinished: they end with this process."""
        if self.lease_id:
            self.leave_unsent(frontier)
            frontier.release(self.lease_id)
            self.lease_id = ""

    def leave_unsent(self, frontier: Frontier) -> None:
        """Uncount it in the limits of its site, unless it was sent."""
        if not self.sent and self.lease_id:
            frontier.free_time(self.lease_id)
            self.sent = True
