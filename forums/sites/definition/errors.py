"""What can be wrong with sites.

ConfigError
└── SiteError            a site file is missing or wrong
    └── UnreadablePage   a page is not what the site file says
        └── PageGone     a page says that what was asked for does not exist
"""

from __future__ import annotations

from redis_components.errors import ConfigError


class SiteError(ConfigError):
    """A site file is missing or wrong; the message names the file, the key, the value and the fix, one line each."""

    @property
    def in_a_line(self) -> str:
        """All of it in one line."""
        return "; ".join(str(self).splitlines())


class UnreadablePage(SiteError):
    """Nothing of a page is what the site file says: a login wall, an error page with status 200, another software."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class PageGone(UnreadablePage):
    """A page says, with a status that all is well, that what was asked for does not exist, or not for guests: as 404 would."""
