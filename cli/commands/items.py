"""`trawl items`: what waits in the item streams, and who takes it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import redis
import typer

from cli.access.names import check_spiders
from cli.access.redis import redis_client
from cli.access.values import item_keys
from cli.views.output import complain, console, duration, plain_table, print_json, say
from redis_components.admin.crawl_records import CrawlRecords
from redis_components.admin.inspector import snapshot
from redis_components.items.group_states import group_states, is_stream
from redis_components.keys import CrawlKeys
from redis_components.server.replies import as_text, server_time
from workers.fleet.consumers import ConsumerPlaces
from workers.fleet.sizes import desired_fleet
from workers.state.registry import Registry

SAMPLE_S = 1.0
SHOWN_CHARS = 120


def items(
    services: Annotated[list[str] | None, typer.Argument(metavar="SERVICE", help="Services; by default all.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as one line of JSON.")] = False,
) -> int:
    """Show how many items wait, how that changed within a second, the oldest one, and whether a consumer takes them.

    Of a stream also its consumer groups: what waits for each, and what its consumers were given and have not acknowledged.
    Items of a service's jobs, which go where its own go, stand in its line.
    """
    with redis_client() as client:
        check_spiders(client, services or ())
        records = CrawlRecords(client).all()
        names = services or sorted({*desired_fleet(Registry(client)), *records})
        crawls = {name: item_keys(client, name) for name in names}
        if not services:
            crawls = {name: keys for name, keys in crawls.items() if not _of_its_service(name, crawls)}
        before = {name: _waiting(client, keys) for name, keys in crawls.items()}
        time.sleep(SAMPLE_S)
        rows = {name: _row(client, keys, before[name]) for name, keys in crawls.items()}
        places = ConsumerPlaces(client).all()
    for name, row in rows.items():
        row["declared"] = records[name].consumer if name in records else ""
        row["redis"] = records[name].redis if name in records else ""
        row["written"] = {
            one.partition("/")[2]: f"{place.target} on {place.node}"
            for one, place in places.items()
            if one.partition("/")[0] == name
        }
    if as_json:
        print_json(rows)
    elif rows:
        _print(rows)
    else:
        say("The fleet has no service.")
    for name, row in () if as_json else rows.items():
        for group, place in sorted(row["written"].items()):
            say(f"{name}{f'/{group}' if group else ''}: written to {place}")
        if row["redis"]:
            complain(f"the crawlers of {name} work with {row['redis']}, not with the fleet's Redis: look at its items there")
    return 0


def _of_its_service(name: str, crawls: Mapping[str, CrawlKeys]) -> bool:
    """Whether it is a job (`books.3fa2c1d0`) whose items go where those of its service, which is shown, go."""
    service = crawls.get(name.rpartition(".")[0])
    return service is not None and service.item_stream() == crawls[name].item_stream()


def _waiting(client: redis.Redis, keys: CrawlKeys) -> int:

    return snapshot(client, "", keys).items


def _row(client: redis.Redis, keys: CrawlKeys, before: int) -> dict[str, Any]:

    stream = is_stream(client, keys)
    waiting = _waiting(client, keys)
    oldest: Any = _oldest_of_stream(client, keys) if stream else client.lindex(keys.item_stream(), 0)
    row: dict[str, Any] = {
        "waiting": waiting,
        "per_s": round((waiting - before) / SAMPLE_S),
        "refused": int(client.llen(keys.bad_items())),
        "consumer": bool(client.exists(keys.writer())),
        "oldest": as_text(oldest[: 4 * SHOWN_CHARS])[:SHOWN_CHARS] if oldest and waiting else None,
    }
    if stream or keys.item_groups:
        states = group_states(client, keys, server_time(client))
        groups = [asdict(one) | {"consumer": bool(client.exists(keys.group_writer(one.name)))} for one in states]
        row |= {"consumer": any(one["consumer"] or one["consumers"] for one in groups), "groups": groups}
    return row


def _oldest_of_stream(client: redis.Redis, keys: CrawlKeys) -> bytes | None:
    entries: Any = client.xrange(keys.item_stream(), count=1)
    return entries[0][1].get(b"item") if entries else None


def _print(rows: Mapping[str, Mapping[str, Any]]) -> None:

    table = plain_table("SERVICE", "WAIT", "PER S", "REFUSED", "CONSUMER", "OLDEST")
    for name, row in rows.items():
        groups = row.get("groups")
        state = row["declared"] or ("at work" if row["consumer"] else "none")
        state = state if groups is None else f"{len(groups)} group{'' if len(groups) == 1 else 's'}"
        figures = ["?"] * 3 if row["redis"] else [f"{row['waiting']:,}", f"{row['per_s']:+,}", f"{row['refused']:,}"]
        table.add_row(name, *figures, state, row["oldest"] or "-")
    console().print(table)
    of_groups = plain_table("GROUP", "WAIT", "PENDING", "OLDEST", "CONSUMER", "PENDING", "IDLE")
    for name, row in rows.items():
        for group in row.get("groups", ()):
            waiting = "?" if group["waiting"] is None else f"{group['waiting']:,}"
            oldest = "-" if group["oldest_s"] is None else duration(group["oldest_s"])
            label = f"{name}/{group['name']}{'' if group['declared'] else ' (not declared)'}"
            cells = [label, waiting, f"{group['pending']:,}", oldest]
            for one in group["consumers"] or [None]:
                own = ["none", "", ""] if one is None else [one["name"], f"{one['pending']:,}", duration(one["idle_s"])]
                of_groups.add_row(*cells, *own)
                cells = ["", "", "", ""]
    if of_groups.row_count:
        console().print(of_groups)
