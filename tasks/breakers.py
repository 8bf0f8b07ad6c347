"""Tasks that look after the sites themselves: whether they are well, and what is kept of their pages."""

from __future__ import annotations

from redis_components.connection import connect

from .app import app


@app.task(name="trawl.probe_sites")
def probe_sites() -> dict[str, str]:
    """Try again the sites whose breaker is open and whose time has come, and open those of sites whose pages have drifted.

    Returns what was done, by site. One at a time: a second one does nothing.
    """
    from workers.breaker import probing

    return probing.probe_sites(connect())


@app.task(name="trawl.prune_raw_pages")
def prune_raw_pages() -> list[str]:
    """Delete raw pages that are too old on the node that runs this; crawlers do so on theirs. Returns the folders deleted."""
    from workers.raw.pruning import prune_here

    return [str(place) for place in prune_here()]
