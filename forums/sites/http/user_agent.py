"""How Trawl names itself to sites, unless a site file or Scrapy's USER_AGENT says otherwise."""

from __future__ import annotations

import re

from redis_components.errors import ConfigError

USER_AGENT = "trawl/0.1 (+a crawl fleet; set USER_AGENT to something that says who you are)"
_CONTACT = re.compile(r"https?://[^\s\"\\()]{3,200}|[^\s\"\\()@]{1,64}@[^\s\"\\()@]{1,190}\.[^\s\"\\()@.]{2,63}")


def agent_with(contact: str | None) -> str:
    """The User-Agent that names whom a site's operator can ask: an e-mail address or a URL. None: the default one.

    Raises ConfigError for what is neither.
    """
    if contact is None:
        return USER_AGENT
    if not (_CONTACT.fullmatch(contact) and contact.isascii()):
        raise ConfigError(
            f"--contact {contact!r:.100} is neither an e-mail address nor a URL: write you@example.org or https://…"
        )
    return f"trawl/0.1 (+{contact})"
