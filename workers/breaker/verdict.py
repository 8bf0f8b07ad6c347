"""Verdict on a response that is not the page, and the options by which a breaker judges them."""

from __future__ import annotations

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
