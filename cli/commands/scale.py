"""`trawl scale` and `trawl autoscale`: the number of crawlers of each service."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any

import typer

from cli.access import redis_client
from cli.views.options import AsJson
from cli.views.output import report
from redis_components.errors import ConfigError
from workers.environment.declaration import check_size
from workers.fleet import sizes
from workers.fleet.autoscale import check_policy
from workers.fleet.sizes import desired_fleet
from workers.state.registry import Registry
from workers.state.services import Autoscaled, Autoscaling, Policy


def scale(
    words: Annotated[list[str], typer.Argument(metavar="SERVICE=N", help="Services and their number of crawlers.")],
    as_json: AsJson = False,
) -> int:
    """Set the number of crawlers of a service; the fleet follows within seconds.

    A service is a spider. Its size is stored in Redis and is the total over all machines. 0 stops a service: its crawlers finish
    their pages and end, and queued requests wait. Crawlers that the nodes have no room for start when there is room; `trawl
    status` names them, and ends with 1 as long as crawlers are missing.

    **Examples:**

        trawl scale forum_detail=4
        trawl scale forum_list=1 forum_detail=0
    """
    wanted = parse_sizes(words)
    with redis_client() as client:
        desired = sizes.scale(Registry(client), Autoscaling(client), wanted)
    report(as_json, desired, f"desired: {sentence(desired)}")
    return 0


def sentence(sizes_of: Mapping[str, int]) -> str:
    """Return `forum_detail=2, forum_list=1`."""
    return ", ".join(f"{service}={n}" for service, n in sorted(sizes_of.items()))


def parse_sizes(words: Iterable[str]) -> dict[str, int]:
    """Return `{"forum_list": 1}` for `["forum_list=1"]`; several may be joined by commas. Raises ConfigError."""
    found: dict[str, int] = {}
    for word in (part.strip() for joined in words for part in joined.split(",")):
        service, equals, number = word.partition("=")
        if not (service and equals and number.isascii() and number.isdigit() and len(number) < 10):
            raise ConfigError(f"{word!r} must have the form service=number: write for example forum_detail=2")
        if service in found:
            raise ConfigError(f"{service} is named twice: name each service once")
        found[service] = check_size(service, int(number))
    return found


def autoscale(
    service: Annotated[str | None, typer.Argument(metavar="SERVICE", help="The service; without it, all are shown.")] = None,
    least: Annotated[int | None, typer.Option("--min", metavar="N", help="Never fewer crawlers than this.")] = None,
    most: Annotated[int | None, typer.Option("--max", metavar="N", help="Never more crawlers than this.")] = None,
    target: Annotated[
        float | None, typer.Option("--target", metavar="SECONDS", help="Finish the waiting work within this time (60).")
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="Turn autoscaling off and keep the present size.")] = False,
    as_json: AsJson = False,
) -> int:
    """Scale a service automatically between two bounds; without options, show the services that are scaled so.

    The service grows when its crawlers cannot finish waiting and incoming work within the target time: at most by a factor of
    two, and after each step throughput is measured for 10 s. It shrinks when fewer crawlers would have sufficed for a minute.
    It never exceeds the capacity of the nodes; where the site is the bottleneck, `--max` is what holds. While autoscaling is on,
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
    rows = [autoscaled_json(name, one, desired.get(name)) for name, one in found.items()]
    lines = [
        f"{one['service']}: {one['desired']} of {one['min']} to {one['max']} crawlers: {one['why'] or 'new'}" for one in rows
    ]
    report(as_json, rows, *(lines or ["No service is autoscaled: trawl autoscale SERVICE --max N"]))
    return 0


def _changed(service: str, before: Policy | None, **given: float | None) -> Policy:
    """Return the policy with the given values. Raises ConfigError where a new policy lacks its upper bound."""
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if before:
        return replace(before, **changes)
    if "max" not in changes:
        raise ConfigError(f"{service}: --max is missing: give the largest number of crawlers")
    return Policy(**{"min": 1, **changes})


def autoscaled_json(service: str, one: Autoscaled, size: int | None) -> dict[str, Any]:
    """Return an autoscaled service as `--json` shows it."""
    policy, memory = one.policy, one.memory
    return {
        "service": service,
        "min": policy.min,
        "max": policy.max,
        "target_s": policy.target_s,
        "desired": size,
        "per_crawler": round(memory.per_crawler, 2) if memory.per_crawler is not None else None,
        "inflow": round(memory.inflow, 2) if memory.inflow is not None else None,
        "why": memory.why or None,
    }
