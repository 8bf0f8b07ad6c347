"""Places: scheme, host and port. Only those that a site file names are fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from .model import Site

_PORTS = {"http": 80, "https": 443}

Place = tuple[str, str | None, int | None]


def place_of(url: str) -> Place:
    """Where a URL leads to."""
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)
    except ValueError:  # a port that is no number
        return "", None, None


def places_of(site: Site) -> frozenset[Place]:
    """Where a site is, and what else may be fetched for it."""
    return frozenset(place_of(str(url)) for url in (site.base_url, *site.also_allowed))
