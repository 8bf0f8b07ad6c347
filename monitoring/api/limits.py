"""`/api/v1/limits`: what sites get from all crawlers together, as `trawl limit` shows and changes it."""

from __future__ import annotations

from typing import Any

import redis
from fastapi import APIRouter, Request

from redis_components.errors import ConfigError
from redis_components.keys import limits_key
from redis_components.politeness import limits
from redis_components.politeness.limits import LaneLimits
from redis_components.politeness.quiet_hours import parse_quiet_hours
from redis_components.server.replies import server_time

from .access import audited
from .body import LimitsBody

BY = "the API"
JsonObject = dict[str, Any]


def limit_routes(client: redis.Redis) -> APIRouter:
    """Return the routes of limits. Acts are audited in the words of the command, so that `trawl limit --history` shows both."""
    routes = APIRouter(prefix="/api/v1/limits")

    def shown(only: str | None = None) -> list[JsonObject]:
        key, now = limits_key(), server_time(client)
        found = {lane: one for lane, one in limits.read(client, key).items() if only in (None, lane)}
        return [one.as_dict(lane, limits.state_of(client, key, lane, now).left_alone_s) for lane, one in found.items()]

    @routes.get("")
    def list_limits() -> list[JsonObject]:
        """List every site that has limits, or asked to be left alone."""
        return shown()

    @routes.post("/{site}")
    def limit_site(site: str, body: LimitsBody, request: Request) -> list[JsonObject]:
        """Limit a site; these limits replace the former ones, and those of the site file."""
        given = body.model_dump(exclude_none=True)
        with audited(client, request, ["limit", site, *(f"--{name.replace('_', '-')}={value}" for name, value in given.items())]):
            if not given or ("burst" in given and "rate" not in given):
                raise ConfigError("name a limit, and with burst a rate; …/remove removes the present limits")
            if quiet := given.pop("quiet", None):
                given["quiet"] = parse_quiet_hours(quiet)
            limits.change(client, limits_key(), site, LaneLimits.of(**given, by=BY))
            return shown(site)

    @routes.post("/{site}/remove")
    def remove_limits(site: str, request: Request) -> list[JsonObject]:
        """Remove the limits of a site, and end a wait that it asked for."""
        with audited(client, request, ["limit", site, "--remove"]):
            limits.change(client, limits_key(), site, None)
            return shown()

    return routes
