"""Verdict on a response that is not the page, and the decision to open a site's breaker. Pure: the time is passed in."""

from __future__ import annotations

from collections import deque
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from scrapy.http import Response


CHALLENGE, LOGIN, REFUSED, FORMAT = "challenge", "login", "refused", "format"
"""Causes that breakers treat apart; an application has others, too. A label of metrics."""
_REFUSED = frozenset({403, 451})


class Verdict(Protocol):
    """Fault of a response."""

    @property
    def cause(self) -> str:
        """Kind of the fault: `refused` and the like."""

    @property
    def reason(self) -> str:
        """One line, for the operator."""

    @property
    def excerpt(self) -> str:
        """Beginning of the body as text; at most 300 characters."""

    @property
    def this_page_only(self) -> bool:
        """True if it may be about this one page, such as a private thread."""


class Options(Protocol):
    """Thresholds of a breaker: the fields of `HostOptions`."""

    @property
    def enabled(self) -> bool:
        """False: it never opens."""

    @property
    def in_a_row(self) -> int:
        """Blocked responses in a row that open it."""

    @property
    def share(self) -> float:
        """Share of blocked responses among the last ones that opens it."""

    @property
    def attempts(self) -> int:
        """Attempts after which a page is given up that is blocked while others are not."""

    @property
    def probe_s(self) -> float:
        """Seconds until the first probe; doubled for each further one."""

    @property
    def probe_max_s(self) -> float:
        """Longest time between two probes."""


class Refusal(NamedTuple):
    """Verdict by the status alone."""

    reason: str
    cause: str = REFUSED
    excerpt: str = ""
    this_page_only: bool = True


class HostOptions(NamedTuple):
    """Options of the breaker of a host."""

    enabled: bool = True
    in_a_row: int = 5
    share: float = 0.5
    attempts: int = 3
    probe_s: float = 60.0
    probe_max_s: float = 3600.0


def refusal(response: Response) -> Refusal | None:
    """Return the verdict on a response that refuses the page by its status, 403 or 451; None for any other."""
    return Refusal(f"refused (HTTP {response.status})") if response.status in _REFUSED else None


WINDOW = 40
"""Number of recent answers of which the share of blocked ones is computed."""
LEAST_BLOCKED = 10
"""Blocked answers in the window below which their share does not count."""
SETTLING_S = 30.0
"""After an opening, answers to requests in flight are not counted: the time until the hold has reached every process, and
more.
"""
STUMBLES = 4
"""Failed tries that open the breaker, as a multiple of `in_a_row`: each page is tried five times."""
MOST_NOTED = 10_000
"""Pages whose first block is remembered."""
MOST_TURNS = 3
"""How many times `attempts` a page may be blocked in all, over any number of openings, before it is given up."""

_OF_A_PAGE = frozenset({LOGIN, REFUSED})


class Step(StrEnum):
    """Next step for a blocked page."""

    AGAIN = "again"  # back to the queue
    OPEN = "open"  # back to the queue, and the site is held
    GIVE_UP = "give up"  # to the dead letters, with the reason
    PRIVATE = "private"  # as GIVE_UP, for a page that is blocked alone: other pages of its kind came between


class SiteHealth:
    """Answers of one kind of page of one site in this process: a site may block threads but not lists."""

    def __init__(self) -> None:
        self.in_a_row = 0  # blocked answers since the last page of the site
        self.pages: set[str] = set()  # their URLs
        self.stumbles = 0  # failed tries since the last answer
        self.opened_at = float("-inf")
        self._goods = 0
        self._first: dict[str, int] = {}  # blocked pages -> good pages before the first block
        self._last: deque[bool] = deque(maxlen=WINDOW)  # True: blocked

    def is_settling(self, now: float) -> bool:
        """Return True while the hold of an opening may not have reached every process."""
        return now - self.opened_at < SETTLING_S

    def answered(self) -> None:
        """Record an answer of any kind, such as a page or a 404."""
        self.stumbles = 0

    def stumbled(self, options: Options, *, now: float) -> bool:
        """Record a failed try that is repeated: no answer, or a busy site. Return True if it opens the breaker: a site that hangs
        would otherwise take the time of all others until each page's tries are spent.
        """
        if self.is_settling(now):
            return False
        self.stumbles += 1
        if not options.enabled or self.stumbles < STUMBLES * options.in_a_row:
            return False
        self._restart(now)
        return True

    def good(self) -> None:
        """Record a page of the site."""
        self._goods += 1
        if self.in_a_row:
            self.in_a_row = 0
            self.pages.clear()
        self._last.append(False)

    def bad(self, verdict: Verdict, url: str, blocks: int, options: Options, *, held: bool, now: float) -> Step:
        """Record a blocked answer, the `blocks`th of this page, and return the next step. `held`: the site is held already.

        A wall opens the breaker after `in_a_row` answers, or if one page was blocked `attempts` times and nothing else came.
        Answers that may concern the page alone, such as a private thread, must occur on `in_a_row` pages, or three times as
        often. A page is given up after `attempts` if other pages were well meanwhile, or none were requested.
        """
        others_are_well = self._goods > self._note(url)
        if blocks >= MOST_TURNS * options.attempts:
            return Step.GIVE_UP
        if held or self.is_settling(now):
            return Step.AGAIN
        self.in_a_row += 1
        self.pages.add(url)
        self._last.append(True)
        if options.enabled and self._is_broken(verdict, blocks, options):
            self._restart(now)
            return Step.OPEN
        if blocks < options.attempts:
            return Step.AGAIN
        if others_are_well:
            del self._first[url]
            return Step.PRIVATE if verdict.this_page_only and verdict.cause in _OF_A_PAGE else Step.GIVE_UP
        is_alone = len(self.pages) == 1 or self._is_odd(verdict) or not options.enabled
        return Step.GIVE_UP if is_alone else Step.AGAIN

    def _is_odd(self, verdict: Verdict) -> bool:
        """Return True for an unexpected page that is not a wall, while other pages were read lately: at the end of a queue,
        removed threads with status 200 may be all that is left. Only their share among all pages counts against the site.
        """
        return verdict.this_page_only and verdict.cause == FORMAT and False in self._last

    def _note(self, url: str) -> int:
        """Return the number of good pages before the first block of this page."""
        if len(self._first) >= MOST_NOTED:
            self._first.clear()
        return self._first.setdefault(url, self._goods)

    def _restart(self, now: float) -> None:
        self.opened_at = now
        self.in_a_row = self.stumbles = 0
        self.pages.clear()
        self._last.clear()

    def _is_broken(self, verdict: Verdict, blocks: int, options: Options) -> bool:
        blocked = sum(self._last)
        if blocked >= LEAST_BLOCKED and len(self._last) == WINDOW and blocked >= options.share * WINDOW:
            return True
        if self._is_odd(verdict):
            return False
        if verdict.this_page_only:
            return len(self.pages) >= options.in_a_row or self.in_a_row >= 3 * options.in_a_row
        return self.in_a_row >= options.in_a_row or blocks >= options.attempts <= self.in_a_row
