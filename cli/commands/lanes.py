"""`trawl lanes`: what each limited site gets now, what waits for it, and why."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cli.access.redis import redis_client
from cli.views.output import console, plain_table, print_json, say
from redis_components.admin.crawl_records import CrawlRecords
from redis_components.admin.lanes import LaneView, look
from redis_components.keys import limits_key
from redis_components.server.replies import server_time


def lanes(as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False) -> int:
    """Show the sites that have limits, that asked to be left alone, or that answered badly.

    **rate now** is the slowest of the site's limit, its robots.txt, and what complaints have lowered it to. **waiting** are
    requests of all services. Sites that nobody limits are not shown: their requests wait in the queue.

    **Examples:**

        trawl lanes
        trawl lanes --json | jq '.[] | select(.state == "left alone") | .site'
    """
    with redis_client() as client:
        crawls = [record.keys for record in CrawlRecords(client).all().values() if not record.redis]
        found = look(client, limits_key(), crawls, server_time(client))
    if as_json:
        print_json([_row(one) for one in found])
        return 0
    if not found:
        say("no site is limited")
        return 0
    table = plain_table("site", "state", "rate now", "waiting", "next in", "why")
    for one in found:
        rate = "" if one.rate_now is None else f"{one.rate_now:.3g}/s"
        wait_s = max(one.state.left_alone_s, one.next_s or 0.0)
        next_in = "" if one.next_s is None and not one.state.left_alone_s else f"{wait_s:.0f} s"
        table.add_row(one.lane, one.condition.value, rate, str(one.waiting), next_in, one.why)
    console().print(table)
    return 0


def _row(one: LaneView) -> dict[str, Any]:
    state = one.state
    return {
        "site": one.lane,
        "state": one.condition.value,
        "rate_now": one.rate_now,
        "limit": one.limits.rate,
        "robots_rate": state.robots,
        "slowed_to": state.slowed,
        "concurrency": one.limits.concurrency,
        "at_work": one.at_work,
        "waiting": one.waiting,
        "next_s": one.next_s,
        "left_alone_s": state.left_alone_s,
        "quiet_s": one.quiet_s,
        "refusals": state.refusals,
        "refused_s": state.refused_s,
        "why": one.why,
    }
