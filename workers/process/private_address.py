"""The error for an address that is not public. It stands alone: it loads Scrapy, and who reads a site file needs none."""

from __future__ import annotations

from scrapy.exceptions import CannotResolveHostError


class PrivateAddress(CannotResolveHostError):
    """A host is, or resolves to, an address that is not public. For Scrapy it is a name without an answer: tried again, and
    counted for the site's breaker.
    """
