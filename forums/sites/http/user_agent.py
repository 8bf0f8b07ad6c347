"""Trawl's User-Agent for sites, unless a site file or Scrapy's USER_AGENT sets another."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from redis_components.errors import ConfigError

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from forum_reader.definition.site import Site

USER_AGENT = "trawl/0.1 (+a crawl fleet; set USER_AGENT to your name and contact)"
_CONTACT = re.compile(r"https?://[^\s\"\\()]{3,200}|[^\s\"\\()@]{1,64}@[^\s\"\\()@]{1,190}\.[^\s\"\\()@.]{2,63}")


def user_agent(site: Site) -> str | None:
    """Return the file's User-Agent: it is sent to every place of the site, since robots.txt may have rules for it."""
    return next((value.get_secret_value() for name, value in site.headers.items() if name.lower() == "user-agent"), None)


def project_agent(settings: BaseSettings) -> str | None:
    """Return the User-Agent that a project has set; None where it is Scrapy's own."""
    return str(settings["USER_AGENT"]) if settings.getpriority("USER_AGENT") else None


def agent_with(contact: str | None) -> str:
    """Return the User-Agent with a contact for the site's operator: an e-mail address or a URL. None: the default one.

    Raises ConfigError for anything else.
    """
    if contact is None:
        return USER_AGENT
    if not (_CONTACT.fullmatch(contact) and contact.isascii()):
        raise ConfigError(
            f"--contact {contact!r:.100} is neither an e-mail address nor a URL: write you@example.org or https://…"
        )
    return f"trawl/0.1 (+{contact})"
