"""Tells the requests of the forum spiders from those of all others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def is_site_page(meta: Mapping[str, Any]) -> bool:
    """Whether a request with this `meta` is for a page of a site: then it has the site's name and what was asked for."""
    return isinstance(meta.get("site"), str) and isinstance(meta.get("page"), dict)
