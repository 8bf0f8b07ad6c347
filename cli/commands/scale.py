"""`trawl scale`: how many crawlers each service shall have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

import typer

from cli.access.node_capacity import lack_of_room
from cli.access.redis import redis_client
from cli.views.output import complain, print_json, say
from redis_components.errors import ConfigError
from workers.environment.values import check_size
from workers.fleet import sizes as fleet
from workers.state.autoscaling import Autoscaling
from workers.state.registry import Registry


def scale(
    sizes: Annotated[list[str], typer.Argument(metavar="SERVICE=N", help="Services and their number of crawlers.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the fleet's size as one line of JSON.")] = False,
) -> int:
    """Set the number of crawlers of a service; the fleet follows within seconds.

    A service is a spider. Its size is stored in Redis and is the total over all machines. 0 stops a service: its crawlers finish
    their pages and end, and queued requests wait. Crawlers that the nodes have no room for start when there is room; which ones
    is said at once. The exit code is 0 then, too, since the size is stored and a node may come; `trawl status` ends with 1 as
    long as crawlers are missing.

    **Examples:**

        trawl scale forum_detail=4
        trawl scale forum_list=1 forum_detail=0
    """
    wanted = parse_sizes(sizes)
    with redis_client() as client:
        desired = fleet.scale(Registry(client), Autoscaling(client), wanted)
        lacking = lack_of_room(client, desired, wanted)
    if as_json:
        print_json(desired)
    else:
        say(f"desired: {sentence(desired)}")
    for line in lacking:
        complain(line)
    return 0


def sentence(sizes: Mapping[str, int]) -> str:
    """`forum_detail=2, forum_list=1`."""
    return ", ".join(f"{service}={n}" for service, n in sorted(sizes.items()))


def parse_sizes(words: Iterable[str]) -> dict[str, int]:
    """`{"forum_list": 1}` for `["forum_list=1"]`; several may be joined by commas. Raises ConfigError."""
    sizes: dict[str, int] = {}
    for word in (part.strip() for joined in words for part in joined.split(",")):
        service, equals, number = word.partition("=")
        if not (service and equals and number.isascii() and number.isdigit() and len(number) < 10):
            raise ConfigError(f"{word!r} must have the form service=number: write for example forum_detail=2")
        if service in sizes:
            raise ConfigError(f"{service} is named twice: name each service once")
        sizes[service] = check_size(service, int(number))
    return sizes
