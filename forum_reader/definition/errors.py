"""Errors of site files and of the pages that they describe.

ConfigError
└── SiteError            a site file is missing or wrong
    └── UnreadablePage   a page does not match the site file
        └── PageGone     a page of something that does not exist
"""

from __future__ import annotations

from redis_components.errors import ConfigError


class SiteError(ConfigError):
    """A site file is missing or wrong; the message names the file, the key, the value and the fix, one line each."""

    @property
    def in_a_line(self) -> str:
        """Return the whole message in one line."""
        return "; ".join(str(self).splitlines())


class UnreadablePage(SiteError):
    """A page that does not match the site file: a login wall, an error page with status 200, another software."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class PageGone(UnreadablePage):
    """A page, sent with status 200, of something that does not exist, or not for guests: treated like a 404."""
