"""`trawl autoscale`: services that size themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType

    from redis_components.autoscaling import Autoscaled, Policy


def autoscale(
    service: Annotated[str | None, typer.Argument(metavar="[SERVICE]", help="The service; all are shown without one.")] = None,
    least: Annotated[int | None, typer.Option("--min", metavar="N", help="Never fewer crawlers than this.")] = None,
    most: Annotated[int | None, typer.Option("--max", metavar="N", help="Never more crawlers than this.")] = None,
    target: Annotated[
        float | None, typer.Option("--target", metavar="SECONDS", help="What waits shall be done within this time (60).")
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="Keep the present size from now on; trawl scale changes it again.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> int:
    """Let a service have as many crawlers as its work needs, between two bounds; without options, show which do.

    It grows when the work that waits and comes in is more than its crawlers finish in the target time: at most doubled, each
    crew measured for 10 s first. It shrinks when fewer would have done for a minute. Where more crawlers do not do more, because
    the site is the bottleneck, it goes back. It never asks for more than the nodes have room for. While it is on, `trawl scale`
    refuses the service.

    **Examples:**

        trawl autoscale forum_detail --min 1 --max 8
        trawl autoscale forum_detail --max 8 --target 300
        trawl autoscale forum_detail --off
        trawl autoscale
    """
    from redis_components.autoscaling import Autoscaling
    from redis_components.errors import ConfigError
    from redis_components.registry import Registry
    from workers.fleet import desired_fleet
    from workers.self_sizing import check_policy

    from .output import console, print_json
    from .redis_access import redis_client

    given = least is not None or most is not None or target is not None
    if service is None and (given or off):
        raise ConfigError("name the service: for example trawl autoscale forum_detail --max 8")
    if off and given:
        raise ConfigError("--off takes neither --min, --max nor --target")
    with redis_client() as client:
        autoscaling, desired = Autoscaling(client), desired_fleet(Registry(client))
        if service is not None and off and not autoscaling.off(service):
            raise ConfigError(f"{service} does not size itself; trawl autoscale shows which services do")
        if service is not None and given:
            before = autoscaling.all().get(service)
            policy = _changed(service, before.policy if before else None, min=least, max=most, target_s=target)
            autoscaling.set(service, check_policy(service, policy))
        found = autoscaling.all()
    if as_json:
        print_json([autoscaled_json(name, one, desired.get(name)) for name, one in found.items()])
    elif found:
        console().print(autoscaled_table(found, desired))
    else:
        print("No service sizes itself. Begin with for example: trawl autoscale forum_detail --max 8")
    return 0


def _changed(service: str, before: Policy | None, **given: float | None) -> Policy:
    """The policy with what was given, in place of what it was. Raises ConfigError where a new one lacks its upper bound."""
    from redis_components.autoscaling import Policy
    from redis_components.errors import ConfigError

    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if before:
        return replace(before, **changes)
    if "max" not in changes:
        raise ConfigError(f"{service}: --max is missing: how many crawlers it may have at most")
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


def autoscaled_table(found: dict[str, Autoscaled], desired: dict[str, int]) -> RenderableType:
    """One line per service."""
    from .output import plain_table

    table = plain_table()
    table.add_column("service", no_wrap=True)
    for name in ("crawlers", "min", "max", "target", "each", "comes in"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("last decision", overflow="fold")
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
