"""Digest of the site file that made a request: a page missing because of a wrong file is requested again after the fix."""

from __future__ import annotations

import hashlib
import json

from forums.sites import Site

_known: dict[str, tuple[Site, str]] = {}  # by name; a reloaded Site is another object


def file_digest(site: Site) -> str:
    """Return 12 hex digits of the file's parts for pages and login; equal for the same content on every node."""
    known = _known.get(site.name)
    if known is None or known[0] is not site:
        pages = site.model_dump(mode="json", include={"base_url", "profile", "pages"})
        secrets = {name: secret.get_secret_value() for name, secret in (*site.headers.items(), *site.cookies.items())}
        content = json.dumps([pages, secrets], sort_keys=True).encode()
        known = _known[site.name] = site, hashlib.blake2b(content, digest_size=6).hexdigest()
    return known[1]
