"""Tasks that probe broken sites and prune kept raw pages."""

from __future__ import annotations

from redis_components.connection import connect

from .app import app


@app.task(name="trawl.probe_sites")
def probe_sites() -> dict[str, str]:
    """Probe sites whose breaker is open and due, and open the breakers of sites whose pages have drifted.

    Returns what was done, by site. One at a time: a second one does nothing.
    """
    from forums.breaker import probe

    return probe.probe_sites(connect())


@app.task(name="trawl.prune_raw_pages")
def prune_raw_pages() -> list[str]:
    """Delete expired raw pages on this node; crawlers do the same on theirs. Returns the deleted folders."""
    from forums.raw_pages.folders import prune_here

    return [str(place) for place in prune_here()]
