"""`trawl limit`: the limits of the requests that all crawlers together send to a site, and what each site gets now."""

from __future__ import annotations

from typing import Annotated, Any

import redis
import typer

from cli.access import redis_client
from cli.views.options import AsJson
from cli.views.tables import Columns, show
from redis_components.admin.lanes import as_dicts
from redis_components.errors import ConfigError, did_you_mean
from redis_components.keys import lane_state_key, limits_key
from redis_components.politeness import limits
from workers.application import application
from workers.fleet.holds import known_site, who


def limit(
    site: Annotated[
        str | None, typer.Argument(metavar="SITE", help="The name of a site file, a host or a domain with its subdomains.")
    ] = None,
    rate: Annotated[float | None, typer.Option(metavar="N", help="Requests per second.")] = None,
    burst: Annotated[int, typer.Option(metavar="N", help="Requests that may be sent at once after a pause.")] = 1,
    concurrency: Annotated[int | None, typer.Option(metavar="N", help="Requests at a time.")] = None,
    weight: Annotated[
        int | None, typer.Option(metavar="N", help="Requests that it gets where another limited site gets one.")
    ] = None,
    per_hour: Annotated[int | None, typer.Option(metavar="N", help="Requests in any hour.")] = None,
    per_day: Annotated[int | None, typer.Option(metavar="N", help="Requests in any 24 hours.")] = None,
    quiet: Annotated[
        str | None, typer.Option(metavar="HOURS", help='Nothing is sent in these, as "01:00-06:00 Europe/Berlin" (else UTC).')
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the site's limits; the site file sets its own again.")] = False,
    as_json: AsJson = False,
) -> int:
    """Limit the requests that all crawlers together send to a site. Without options: show what each site gets now.

    Every crawler obeys with its next exchange. New limits replace the former ones, and those of the site file. Requests wait in
    the frontier until the limits allow them; other sites are not delayed. `trawl audit --act limit` shows who changed them.

    Shown are the sites that have limits, asked to be left alone, or answered badly. **now** is the slowest of a site's limit, its
    robots.txt, and what complaints have lowered it to. **wait** counts requests of all services.

    **Examples:**

        trawl limit
        trawl limit example.org --rate 3 --concurrency 4
        trawl limit books --per-hour 600 --per-day 5000
        trawl limit books --weight 3
        trawl limit books --rate 1 --quiet "23:00-06:00 Europe/Berlin"
        trawl limit example.org --remove
        trawl limit --json | jq '.[] | select(.state == "left alone") | .site'
    """
    named = {"rate": rate, "concurrency": concurrency, "weight": weight, "per_hour": per_hour, "per_day": per_day, "quiet": quiet}
    given: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    if site is None and (given or remove):
        raise ConfigError("name a site: trawl limit SITE --rate N")
    if given and remove:
        raise ConfigError("--remove cannot be combined with limits")
    if burst != 1 and rate is None:
        raise ConfigError("--burst needs --rate: trawl limit SITE --rate N --burst N")
    wanted = limits.LaneLimits.of(**given, burst=burst, by=who())
    with redis_client() as client:
        key = limits_key()
        if site is not None and remove:
            limits.change(client, key, site, None)
        elif site is not None and given:
            _check(client, key, site)
            limits.change(client, key, site, wanted)
        _show(client, key, None if remove else site, as_json)
    return 0


def _check(client: redis.Redis, key: str, site: str) -> None:
    """Raise ConfigError for a name that is neither a site, a host, nor a lane that a site file or a crawler names."""
    if client.hexists(key, site) or client.exists(lane_state_key(key, site)):
        return
    if site not in application().lanes():
        known_site(site, anything=False)


def _show(client: redis.Redis, key: str, only: str | None, as_json: bool) -> None:
    rows = as_dicts(client, key, only)
    columns: Columns = {
        "site": "site",
        "state": "state",
        "now": lambda row: "" if row["rate_now"] is None else f"{row['rate_now']:.3g}/s",
        "wait": "waiting",
        "next": _next_in,
        "why": "why",
        "limits": _in_words,
    }
    show(rows, columns, as_json, empty="" if rows else _unlimited(client, key, only))


def _unlimited(client: redis.Redis, key: str, only: str | None) -> str:
    if only is None:
        return "no site is limited"
    return f"{only} is not limited{did_you_mean(only, {*limits.read(client, key), *application().site_names()})}"


def _in_words(row: dict[str, Any]) -> str:
    parts = (
        row["rate"] and f"{row['rate']:g}/s" + (f" (burst {row['burst']})" if row["burst"] > 1 else ""),
        row["concurrency"] and f"{row['concurrency']} at a time",
        row["weight"] > 1 and f"weight {row['weight']}",
        row["per_minute"] and f"{row['per_minute']}/min",
        row["per_hour"] and f"{row['per_hour']}/h",
        row["per_day"] and f"{row['per_day']}/day",
        row["quiet"] and f"quiet {row['quiet']}",
    )
    return ", ".join(part for part in parts if part)


def _next_in(row: dict[str, Any]) -> str:
    wait_s = max(row["left_alone_s"], row["next_s"] or 0.0)
    return "" if row["next_s"] is None and not row["left_alone_s"] else f"{wait_s:.0f} s"
