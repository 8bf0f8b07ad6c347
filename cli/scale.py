"""`trawl scale`: how many crawlers each service shall have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

import typer


def scale(
    sizes: Annotated[list[str], typer.Argument(metavar="SERVICE=N...", help="Services and their number of crawlers.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the fleet's size as one line of JSON.")] = False,
) -> int:
    """Set how many crawlers a service shall have; the fleet follows within seconds.

    A service is a spider. Its size is kept in Redis and counts for all machines together. 0 stops a service: its crawlers finish
    their pages and end, and what is queued waits.

    **Examples:**

        trawl scale forum_detail=4
        trawl scale forum_list=1 forum_detail=0
    """
    from redis_components.autoscaling import Autoscaling
    from redis_components.registry import Registry
    from workers import fleet

    from .output import print_json
    from .redis_access import redis_client

    wanted = parse_sizes(sizes)
    with redis_client() as client:
        desired = fleet.scale(Registry(client), Autoscaling(client), wanted)
    if as_json:
        print_json(desired)
    else:
        print(f"desired: {sentence(desired)}")
    return 0


def sentence(sizes: Mapping[str, int]) -> str:
    """`forum_detail=2, forum_list=1`."""
    return ", ".join(f"{service}={n}" for service, n in sorted(sizes.items()))


def parse_sizes(words: Iterable[str]) -> dict[str, int]:
    """`{"forum_list": 1}` for `["forum_list=1"]`; several may be joined by commas. Raises ConfigError."""
    from redis_components.errors import ConfigError
    from workers.fleet import check_size

    sizes: dict[str, int] = {}
    for word in (part.strip() for joined in words for part in joined.split(",")):
        service, equals, number = word.partition("=")
        if not (service and equals and number.isascii() and number.isdigit()):
            raise ConfigError(f"{word!r} is not of the form service=number: write for example forum_detail=2")
        if service in sizes:
            raise ConfigError(f"{service} is named twice: name each service once")
        sizes[service] = check_size(service, int(number))
    return sizes
