"""The outcomes and the result of `crawl_once`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

MOST_ITEMS = 1000  # that can be asked for


class OnceOutcome(StrEnum):
    """The end of a small crawl."""

    FINISHED = "finished"  # the crawl ended unasked, for any finish reason of Scrapy
    CRASHED = "crashed"  # it could not be started, or not continued
    TIMEOUT = "timeout"  # its time was over; pages in flight were finished
    CANCELLED = "cancelled"  # by a user, or because Celery ended the task
    HUNG = "hung"  # it could not be stopped; its process had to go


@dataclass(frozen=True, kw_only=True)
class OnceResult:
    """Result of `crawl_once`, as JSON."""

    spider: str
    outcome: OnceOutcome
    reason: str  # Scrapy's finish reason
    error: str | None = None  # the cause of a crash, in one line
    pages: int = 0  # responses received
    items: int = 0  # items scraped
    seconds: float = 0.0
    stats: dict[str, Any] = field(default_factory=dict)  # Scrapy's; times in ISO 8601
    kept: list[Any] = field(default_factory=list)  # the first items, as many as were asked for

    @property
    def good(self) -> bool:
        """True if the crawl finished."""
        return self.outcome is OnceOutcome.FINISHED
