"""Errors of the reader; each message is one line for the user that names the input and, where there is one, the fix.

ReaderError
├── FetchFailed          a page could not be fetched
├── NotAPage             the input is not an HTML page
├── PageTooLarge         the page is larger than any page of a forum
├── NoForum              no forum was found at an address
├── AnotherHost          an address leads to another host
└── SiteError            a site file is missing or wrong
    └── UnreadablePage   a page does not match the site file
        └── PageGone     a page of something that does not exist
"""

from __future__ import annotations


class ReaderError(Exception):
    """Base of every error that the reader raises on purpose."""


class FetchFailed(ReaderError):
    """A page could not be fetched; the message names its URL and the reason."""


class NotAPage(ReaderError):
    """The input is not an HTML page; the message describes it."""


class PageTooLarge(ReaderError):
    """The page is larger than any page of a forum; the message names the limit."""


class NoForum(ReaderError):
    """No forum was found at an address; the message names the reason."""


class AnotherHost(ReaderError):
    """An address leads to another host, at `url`, which may not be the forum that was meant."""

    def __init__(self, asked: str, url: str) -> None:
        super().__init__(f"{asked} leads to another host, {url}")
        self.url = url


class SiteError(ReaderError):
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
