"""`trawl items`: what waits in the item streams, and who takes it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.views.output import say

if TYPE_CHECKING:
    import redis

    from redis_components.keys import CrawlKeys

SAMPLE_S = 1.0
SHOWN_CHARS = 120


def items(
    services: Annotated[list[str] | None, typer.Argument(metavar="[SERVICE]...", help="Services; by default all.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as one line of JSON.")] = False,
) -> int:
    """Show how many items wait, how that changed within a second, the oldest one, and whether a consumer takes them."""
    from cli.access.names import check_spiders
    from cli.access.redis import redis_client
    from cli.views.output import console, plain_table, print_json
    from redis_components.fleet.crawl_records import CrawlRecords
    from redis_components.fleet.registry import Registry
    from workers.fleet.sizes import desired_fleet

    with redis_client() as client:
        check_spiders(client, services or ())
        records = CrawlRecords(client)
        names = services or sorted({*desired_fleet(Registry(client)), *records.all()})
        crawls = records.keys_of_all(names)
        before = {name: int(client.llen(keys.item_stream())) for name, keys in crawls.items()}
        time.sleep(SAMPLE_S)
        rows = {name: _row(client, keys, before[name]) for name, keys in crawls.items()}
    if as_json:
        print_json(rows)
        return 0
    table = plain_table("SERVICE", "WAIT", "PER S", "REFUSED", "CONSUMER", "OLDEST")
    for name, row in rows.items():
        state = "at work" if row["consumer"] else "none"
        table.add_row(name, f"{row['waiting']:,}", f"{row['per_s']:+,}", f"{row['refused']:,}", state, row["oldest"] or "-")
    if rows:
        console().print(table)
    else:
        say("The fleet has no service.")
    return 0


def _row(client: redis.Redis, keys: CrawlKeys, before: int) -> dict[str, Any]:
    from redis_components.server.replies import as_text

    waiting = int(client.llen(keys.item_stream()))
    oldest: Any = client.lindex(keys.item_stream(), 0)
    return {
        "waiting": waiting,
        "per_s": round((waiting - before) / SAMPLE_S),
        "refused": int(client.llen(keys.bad_items())),
        "consumer": bool(client.exists(keys.writer())),
        "oldest": as_text(oldest[: 4 * SHOWN_CHARS])[:SHOWN_CHARS] if oldest else None,
    }
