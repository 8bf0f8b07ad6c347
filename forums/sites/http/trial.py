"""Trial: a site that gets no contact information from Trawl is limited to a number of requests a day, over all crawlers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .user_agent import project_agent, user_agent

if TYPE_CHECKING:
    from forum_reader.definition.site import Site

_RESERVED = frozenset(
    {"example", "test", "invalid", "localhost", "local", "internal", "home.arpa", "example.com", "example.net", "example.org"}
)
"""Ends of names that are reserved (RFC 2606, 6761, 6762, 8375)."""


def is_on_trial(site: Site) -> bool:
    """Return True if the site is public and gets a User-Agent without a contact: neither its file nor the project has one."""
    if site.allow_private or not is_public_name(site.base_url.host or "") or user_agent(site):
        return False
    from scrapy.utils.project import get_project_settings

    return project_agent(get_project_settings()) is None


def is_public_name(host: str) -> bool:
    """Return True if a host may be a public site: a name with a dot, or a public address."""
    from workers.http.public_addresses import is_public

    host = host.strip("[]").rstrip(".").lower()
    parts = host.split(".")
    if ":" in host or parts[-1].isdigit():
        return is_public(host)
    return len(parts) > 1 and not _RESERVED & {parts[-1], ".".join(parts[-2:])}
