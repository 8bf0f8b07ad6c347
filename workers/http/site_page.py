"""Distinguishes the requests of an application's sites, which it watches and keeps itself, from others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def is_site_page(meta: Mapping[str, Any]) -> bool:
    """Return True if a request with this `meta` is for a page of a site: it has the site's name and the page's kind."""
    return isinstance(meta.get("site"), str) and isinstance(meta.get("page"), dict)
