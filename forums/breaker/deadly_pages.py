"""Opens a site's breaker at once after a page that hung or killed its crawler: the next crawler would fail on it, too."""

from __future__ import annotations

from forum_reader.definition.site_options import BreakerOptions
from forum_reader.page.soft_block import BlockVerdict, Cause
from forums.sites import SiteError, load_site
from redis_components.connection import connect
from workers.process.page_at_work import PageAtWork

from .state import open_breaker


def open_for_page(page: PageAtWork, what: str, by: str = "supervisor") -> None:
    """Open the breaker of the page's site; `what` happened to the process. Does nothing if the site file disables the breaker.
    Raises redis.RedisError.
    """
    try:
        options = load_site(page.site).breaker
    except SiteError:  # its file is wrong or missing: its queue is held for that reason
        options = BreakerOptions()
    if options.enabled:
        found = BlockVerdict(cause=Cause.HUNG, reason=f"a crawler {what}")
        with connect() as client:
            open_breaker(client, page.site, found, options, url=page.url, kind=page.kind, by=by)
