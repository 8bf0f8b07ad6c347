"""The error for an address that is not public. Apart from other modules, as it loads Scrapy, which reading a site
file does not.
"""

from __future__ import annotations

from scrapy.exceptions import CannotResolveHostError


class PrivateAddress(CannotResolveHostError):
    """A host is, or resolves to, an address that is not public. For Scrapy it is a name without an answer: tried again, and
    counted for the site's breaker.
    """
