"""Which version of a site file made a request: a page that is 404 by a wrong file is asked for again when the file is mended."""

from __future__ import annotations

import hashlib
import json

from forums.sites import Site

_known: dict[str, tuple[Site, str]] = {}  # by name; a Site that was loaded afresh is another object


def file_digest(site: Site) -> str:
    """12 hex digits of what the file says of pages and of the login; the same for the same content, on every node."""
    known = _known.get(site.name)
    if known is None or known[0] is not site:
        pages = site.model_dump(mode="json", include={"base_url", "profile", "pages"})
        secrets = {name: secret.get_secret_value() for name, secret in (*site.headers.items(), *site.cookies.items())}
        said = json.dumps([pages, secrets], sort_keys=True).encode()
        known = _known[site.name] = site, hashlib.blake2b(said, digest_size=6).hexdigest()
    return known[1]
