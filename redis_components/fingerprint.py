"""Fingerprints as scrapy-redis makes them, for a dupefilter that was begun with it.

REQUEST_FINGERPRINTER_CLASS = "redis_components.fingerprint.ScrapyRedisFingerprinter"
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from w3lib.url import canonicalize_url

if TYPE_CHECKING:
    from scrapy import Request


class ScrapyRedisFingerprinter:
    """SHA-1 of method, canonical URL and body as JSON: the 20 bytes that scrapy-redis 0.8 and 0.9 store as 40 hex digits.

    Scrapy's own fingerprinter makes other ones of the same parts, so without this one every page of an imported crawl would
    count as new.
    """

    def fingerprint(self, request: Request) -> bytes:
        """Return the fingerprint; fragments, the order of query parameters and headers do not matter."""
        parts = {"body": request.body.hex(), "method": request.method, "url": canonicalize_url(request.url)}
        return hashlib.sha1(json.dumps(parts).encode(), usedforsecurity=False).digest()


class OldScrapyFingerprinter:
    """SHA-1 of method, canonical URL and body, one after the other: Scrapy's own until 2.6, and scrapy-redis's until 0.7.3."""

    def fingerprint(self, request: Request) -> bytes:
        """Return the fingerprint; fragments, the order of query parameters and headers do not matter."""
        parts = (request.method.encode(), canonicalize_url(request.url).encode(), request.body)
        return hashlib.sha1(b"".join(parts), usedforsecurity=False).digest()
