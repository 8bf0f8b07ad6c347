"""When a site counts as broken, from what this process was answered. Pure: told the time."""

from __future__ import annotations

from collections import deque
from enum import StrEnum

from forums.sites.definition.breaker_options import BreakerOptions
from forums.sites.http.soft_block import BlockVerdict, Cause

WINDOW = 40
"""Answers among which the share of blocked ones counts."""
LEAST_BLOCKED = 10
"""Fewer blocked answers than this in the window open nothing by their share."""
SETTLING_S = 30.0
"""After it was opened, answers to what was under way are not counted: until the site is held everywhere, and some more."""
STUMBLES = 4
"""So many times `in_a_row` failed tries open it: each page is tried five times."""
MOST_NOTED = 10_000
"""Pages of which it is noted when they were first blocked."""
MOST_TURNS = 3
"""How many times `attempts` a page may be blocked in all, over any number of openings, before it is given up."""

_OF_A_PAGE = frozenset({Cause.LOGIN, Cause.REFUSED})


class Step(StrEnum):
    """What becomes of a page that was blocked."""

    AGAIN = "again"  # back to the queue
    OPEN = "open"  # back to the queue, and the site is held
    GIVE_UP = "give up"  # to the dead ones, with the reason
    PRIVATE = "private"  # the same, and it is about this page: others of its kind came between


class SiteHealth:
    """What one process has seen of one kind of page of one site: threads may be walled and lists not."""

    def __init__(self) -> None:
        self.in_a_row = 0  # blocked answers, and no page of the site since
        self.pages: set[str] = set()  # that they were for
        self.stumbles = 0  # tries without a useful answer, and no answer since
        self.opened_at = float("-inf")
        self._goods = 0
        self._first: dict[str, int] = {}  # pages that were blocked -> good ones before that
        self._last: deque[bool] = deque(maxlen=WINDOW)  # True: blocked

    def is_settling(self, now: float) -> bool:
        """Whether it opened the breaker so lately that the hold may not have reached every process."""
        return now - self.opened_at < SETTLING_S

    def answered(self) -> None:
        """Anything that is an answer, such as a page or a 404."""
        self.stumbles = 0

    def stumbled(self, options: BreakerOptions, *, now: float) -> bool:
        """A try that failed and is made again: no answer, or a busy site. Whether the site is held from now on: a site that hangs
        would take the time of all others until the tries of each page are spent.
        """
        if self.is_settling(now):
            return False
        self.stumbles += 1
        if not options.enabled or self.stumbles < STUMBLES * options.in_a_row:
            return False
        self._begin_anew(now)
        return True

    def good(self) -> None:
        """A page of the site."""
        self._goods += 1
        if self.in_a_row:
            self.in_a_row = 0
            self.pages.clear()
        self._last.append(False)

    def bad(self, verdict: BlockVerdict, url: str, blocks: int, options: BreakerOptions, *, held: bool, now: float) -> Step:
        """A blocked answer: what becomes of the page, which was blocked `blocks` times with this one. `held`: the site is.

        A wall opens the breaker after `in_a_row` answers, or where one page was blocked `attempts` times and nothing else came.
        What may concern one page alone, such as a private thread, has to be met on `in_a_row` pages, or three times as often. A
        page is given up after `attempts` where others were well meanwhile, or none were asked for.
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
            self._begin_anew(now)
            return Step.OPEN
        if blocks < options.attempts:
            return Step.AGAIN
        if others_are_well:
            del self._first[url]
            return Step.PRIVATE if verdict.this_page_only and verdict.cause in _OF_A_PAGE else Step.GIVE_UP
        is_alone = len(self.pages) == 1 or self._is_odd(verdict) or not options.enabled
        return Step.GIVE_UP if is_alone else Step.AGAIN

    def _is_odd(self, verdict: BlockVerdict) -> bool:
        """A page that is neither a wall nor what the site file says, where others were read lately: threads that are gone with
        status 200 may be all that is left at the end of a queue. Only their share among all pages speaks for the site.
        """
        return verdict.this_page_only and verdict.cause is Cause.FORMAT and False in self._last

    def _note(self, url: str) -> int:
        """How many good pages there had been when this one was first blocked."""
        if len(self._first) >= MOST_NOTED:
            self._first.clear()
        return self._first.setdefault(url, self._goods)

    def _begin_anew(self, now: float) -> None:
        self.opened_at = now
        self.in_a_row = self.stumbles = 0
        self.pages.clear()
        self._last.clear()

    def _is_broken(self, verdict: BlockVerdict, blocks: int, options: BreakerOptions) -> bool:
        blocked = sum(self._last)
        if blocked >= LEAST_BLOCKED and len(self._last) == WINDOW and blocked >= options.share * WINDOW:
            return True
        if self._is_odd(verdict):
            return False
        if verdict.this_page_only:
            return len(self.pages) >= options.in_a_row or self.in_a_row >= 3 * options.in_a_row
        return self.in_a_row >= options.in_a_row or blocks >= options.attempts <= self.in_a_row
