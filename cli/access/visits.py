"""The limits of sites for commands that fetch a page themselves."""

from __future__ import annotations

from cli.access.redis import running_url
from forum_reader.definition.origins import place_of
from forums.sites import load_all
from forums.sites.http.fetch import VisitLimits
from redis_components.connection import connect
from redis_components.keys import limits_key
from redis_components.politeness.limits import LanePermits


def visit_limits(url: str, site: str | None = None) -> VisitLimits | None:
    """Of the site at `url`, which a site file may name; None where no Redis is running: then nobody crawls it."""
    running = running_url()
    if running is None:
        return None
    known = next((one for one in load_all()[0] if one.name == site or (not site and place_of(url) in one.places)), None)
    name, lane = (known.name, known.politeness.lane) if known else (site, None)
    return VisitLimits(LanePermits(connect(running), limits_key()), name, lane)
