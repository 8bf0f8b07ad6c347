"""`trawl autoscale`: services that size themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

from cli.access.node_capacity import lack_of_room
from cli.access.redis import redis_client
from cli.views.output import PlainTable, complain, console, plain_table, print_json, say
from redis_components.errors import ConfigError
from workers.fleet.autoscale import check_policy
from workers.fleet.sizes import desired_fleet, largest_fleet
from workers.state.autoscaling import Autoscaled, Autoscaling, Policy
from workers.state.registry import Registry


def autoscale(
    service: Annotated[str | None, typer.Argument(metavar="SERVICE", help="The service; without it, all are shown.")] = None,
    least: Annotated[int | None, typer.Option("--min", metavar="N", help="Never fewer crawlers than this.")] = None,
    most: Annotated[int | None, typer.Option("--max", metavar="N", help="Never more crawlers than this.")] = None,
    target: Annotated[
        float | None, typer.Option("--target", metavar="SECONDS", help="Finish the waiting work within this time (60).")
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="Turn autoscaling off and keep the present size.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> int:
    """Scale a service automatically between two bounds; without options, show the services that are scaled so.

    The service grows when its crawlers cannot finish waiting and incoming work within the target time: at most by a factor of
    two, and after each step throughput is measured for 10 s. It shrinks when fewer crawlers would have sufficed for a minute.
    If more crawlers bring no more throughput, because the site is the bottleneck, it shrinks again. It never exceeds the capacity
    of the nodes; a `--max` beyond it is said at once, and stored (exit code 0), since a node may come. While autoscaling is on,
    `trawl scale` refuses the service.

    **Examples:**

        trawl autoscale forum_detail --min 1 --max 8
        trawl autoscale forum_detail --max 8 --target 300
        trawl autoscale forum_detail --off
        trawl autoscale
    """
    given = least is not None or most is not None or target is not None
    if service is None and (given or off):
        raise ConfigError("the service is missing: write for example trawl autoscale forum_detail --max 8")
    if off and given:
        raise ConfigError("--off cannot be combined with --min, --max or --target")
    with redis_client() as client:
        autoscaling, desired = Autoscaling(client), desired_fleet(Registry(client))
        if service is not None and off and not autoscaling.off(service):
            raise ConfigError(f"{service} is not autoscaled; trawl autoscale shows the services that are")
        if service is not None and given:
            before = autoscaling.all().get(service)
            policy = _changed(service, before.policy if before else None, min=least, max=most, target_s=target)
            autoscaling.set(service, check_policy(service, policy, desired))
        found = autoscaling.all()
        lacking = lack_of_room(client, largest_fleet(desired, autoscaling), {service}) if service and given else []
    for line in lacking:
        complain(line)
    if as_json:
        print_json([autoscaled_json(name, one, desired.get(name)) for name, one in found.items()])
    elif found:
        console().print(autoscaled_table(found, desired))
    else:
        say("No service is autoscaled. Start with for example: trawl autoscale forum_detail --max 8")
    return 0


def _changed(service: str, before: Policy | None, **given: float | None) -> Policy:
    """The policy with what was given, in place of what it was. Raises ConfigError where a new one lacks its upper bound."""
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if before:
        return replace(before, **changes)
    if "max" not in changes:
        raise ConfigError(f"{service}: --max is missing: give the largest number of crawlers")
    return Policy(**{"min": 1, **changes})


def autoscaled_json(service: str, one: Autoscaled, size: int | None) -> dict[str, Any]:
    """A service that sizes itself as `--json` shows it."""
    policy, memory = one.policy, one.memory
    return {
        "service": service,
        "min": policy.min,
        "max": policy.max,
        "target_s": policy.target_s,
        "desired": size,
        "per_crawler": round(memory.per_crawler, 2) if memory.per_crawler is not None else None,
        "inflow": round(memory.inflow, 2) if memory.inflow is not None else None,
        "ceiling": memory.ceiling,
        "why": memory.why or None,
    }


def autoscaled_table(found: dict[str, Autoscaled], desired: dict[str, int]) -> PlainTable:
    """One line per service."""
    table = plain_table("service", "crawlers", "min", "max", "target", "each", "comes in", "last decision")
    for service, one in found.items():
        policy, memory = one.policy, one.memory
        size = desired.get(service)
        table.add_row(
            service,
            "-" if size is None else str(size),
            str(policy.min),
            str(policy.max),
            f"{policy.target_s:g} s",
            "?" if memory.per_crawler is None else f"{memory.per_crawler:.1f}/s",
            "?" if memory.inflow is None else f"{memory.inflow:.1f}/s",
            memory.why or "none yet",
        )
    return table
