"""Whether pages that do not exist, although lists lead to them, say something about the site or its file. Pure: told the time.

One thread may be removed between the list and its page. Where one after the other is missing and none is there, the URL of the
site file is wrong, or the site has changed it: nothing may be taken for removed then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forums.sites import Site
from forums.sites.definition.breaker_options import BreakerOptions
from forums.sites.definition.required_fields import DISPENSABLE

from .health import MOST_TURNS, SETTLING_S, Step

IN_A_ROW = 2
"""So many times the breaker's `in_a_row` different pages open it: a missing page says less than a wall."""
LEAST = 3
"""Different pages that open it where no page of this kind was ever there and each was tried `attempts` times."""
BELIEVED_S = 3600.0
"""After a probe has found the site well, what is missing is believed for this time, by the same site file."""


class MissingPages:
    """What one process has seen of one kind of page of one site."""

    def __init__(self) -> None:
        self.urls: set[str] = set()  # missing one after the other, and no page between
        self._goods = 0
        self._opened_at = float("-inf")
        self._opened_by = ""  # the site file's digest then
        self._count = 0  # pages that opened it

    def is_settling(self, now: float) -> bool:
        """Whether it opened the breaker so lately that the hold may not have reached every process."""
        return now - self._opened_at < SETTLING_S

    def good(self) -> None:
        """A page of this kind was there."""
        self._goods += 1
        self.urls.clear()

    def step(
        self, url: str, blocks: int, file: str, options: BreakerOptions, *, is_check: bool, held: bool, now: float
    ) -> Step | None:
        """What becomes of a missing page that went back to the queue `blocks` times before: AGAIN, OPEN, or None: it is believed.

        `file`: digest of the site file. A page that is only checked once more (`is_check`) may well be removed: it counts for
        nothing.
        """
        if not options.enabled or blocks >= MOST_TURNS * options.attempts:
            return None
        if held or self.is_settling(now):
            return Step.AGAIN
        if self._opened_by == file and now - self._opened_at < BELIEVED_S:
            return None
        if not is_check:
            self.urls.add(url)
        if len(self.urls) < 2:
            return None
        tried_enough = blocks + 1 >= options.attempts
        if len(self.urls) >= IN_A_ROW * options.in_a_row or (tried_enough and not self._goods and len(self.urls) >= LEAST):
            self._opened_at, self._opened_by, self._count = now, file, len(self.urls)
            self.urls.clear()
            return Step.OPEN
        return None if tried_enough else Step.AGAIN

    def reason(self, kind: str, what: str) -> str:
        """Why the breaker opens, for people; `what` is the site's answer, such as `HTTP 404`."""
        return f"every {kind} page is missing ({what}), {self._count} one after the other: is [pages.{kind}] url right?"


def should_exist(site: Site, page: Mapping[str, Any], reading: Mapping[str, Any]) -> bool:
    """Whether a list, or an opening post, has said that there is such a page."""
    if not reading or page.get("number", 1) != 1 or page["kind"] in DISPENSABLE:
        return False
    return page["kind"] == "thread" or site.pages.thread is None or bool(reading.get("replies"))
