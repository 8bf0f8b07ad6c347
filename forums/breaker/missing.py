"""Missing pages that lists link to: decides if the site or its file is at fault.

One thread may be removed between the list and its page. If pages are missing one after the other and none is found, the URL in
the site file is wrong, or the site has changed it: then nothing may be stored as removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forum_reader.definition.fields import DISPENSABLE
from forum_reader.definition.site import BreakerOptions
from forums.sites import Site
from workers.breaker.hosts import MOST_TURNS, SETTLING_S, Step

IN_A_ROW = 2
"""Different pages that open the breaker, as a multiple of `in_a_row`: a missing page is weaker evidence than a wall."""
LEAST = 3
"""Different pages that open it if no page of this kind was ever found and each was tried `attempts` times."""
BELIEVED_S = 3600.0
"""After a probe has found the site well, missing pages are accepted for this time, under the same site file."""


class MissingPages:
    """Missing pages of one kind of page of one site in this process."""

    def __init__(self) -> None:
        self.urls: set[str] = set()  # missing since the last page that was found
        self._opened_at = float("-inf")
        self._opened_by = ""  # digest of the site file at that time
        self._count = 0  # pages that opened it

    def is_settling(self, now: float) -> bool:
        """Return True while the hold of an opening may not have reached every process."""
        return now - self._opened_at < SETTLING_S

    def step(
        self, url: str, blocks: int, file: str, options: BreakerOptions, *, goods: int, is_check: bool, held: bool, now: float
    ) -> Step | None:
        """Return the next step for a missing page that went back to the queue `blocks` times: AGAIN, OPEN, or None to accept it.

        `file`: digest of the site file; `goods`: pages of this kind that were found. A page that is only checked again
        (`is_check`) is likely removed and does not count.
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
        if len(self.urls) >= IN_A_ROW * options.in_a_row or (tried_enough and not goods and len(self.urls) >= LEAST):
            self._opened_at, self._opened_by, self._count = now, file, len(self.urls)
            self.urls.clear()
            return Step.OPEN
        return None if tried_enough else Step.AGAIN

    def reason(self, kind: str, what: str) -> str:
        """Return why the breaker opens, for people; `what` is the site's answer, such as `HTTP 404`."""
        return f"every {kind} page is missing ({what}), {self._count} one after the other: is [pages.{kind}] url right?"


def should_exist(site: Site, page: Mapping[str, Any], reading: Mapping[str, Any]) -> bool:
    """Return True if a list, or an opening post, links to the page."""
    if not reading or page.get("number", 1) != 1 or page["kind"] in DISPENSABLE:
        return False
    return page["kind"] == "thread" or site.pages.thread is None or bool(reading.get("replies"))
