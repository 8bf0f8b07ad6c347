"""A page that hung or ended the crawler that read it opens its site's breaker at once: the next one would be held up, too."""

from __future__ import annotations

from forums.sites import SiteError, load_site
from forums.sites.definition.breaker_options import BreakerOptions
from forums.sites.http.soft_block import BlockVerdict, Cause
from redis_components.connection import connect
from workers.process.page_at_work import PageAtWork

from .state import open_breaker


def open_for_page(page: PageAtWork, what: str, by: str = "supervisor") -> None:
    """`what` became of the process. Does nothing for a site whose file says that it has no breaker. Raises redis.RedisError."""
    try:
        options = load_site(page.site).breaker
    except SiteError:  # its file is wrong or gone: what waits of it is held for that
        options = BreakerOptions()
    if options.enabled:
        found = BlockVerdict(cause=Cause.HUNG, reason=f"a crawler {what}")
        with connect() as client:
            open_breaker(client, page.site, found, options, url=page.url, kind=page.kind, by=by)
