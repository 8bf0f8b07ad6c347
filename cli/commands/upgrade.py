"""`trawl upgrade --check`: the data and the processes of a fleet, compared with this Trawl."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Annotated

import redis
import typer

from cli.access import redis_client, running_url
from cli.views.options import AsJson
from redis_components import __version__
from redis_components.admin.inspector import CrawlRecords
from redis_components.errors import ConfigError
from redis_components.keys import CrawlKeys
from redis_components.server.untrusted_values import server_time
from workers.application import application
from workers.fleet.sizes import declared_fleet
from workers.state.nodes import NodeRecord, Nodes
from workers.state.registry import Registry

from .doctor import Verdict, each, show_verdicts

LAYOUT = "1"  # of the keys in Redis, as redis_components/lua/frontier/exchange.lua has it


def findings() -> Iterator[Verdict]:
    """Yield the findings of files, Redis, its queues and nodes, and the database; an error of one hides no other."""
    yield from each((("files", _of_files), ("Redis", _of_redis), ("database", _of_database)))


def layout(service: str, stored: str | None) -> Verdict:
    """Return whether crawlers of this Trawl can work on a service's queue. Pure."""
    what = "queue"
    if stored is None:
        return Verdict(what, "ok", f"{service} has none yet")
    if stored == LAYOUT:
        return Verdict(what, "ok", f"{service} has layout {stored}, old and new crawlers work on it side by side")
    fix = "use the Trawl that crawls there, or another TRAWL_NAMESPACE for this one"
    return Verdict(what, "bad", f"{service} has layout {stored}, this Trawl has {LAYOUT}", fix)


def nodes(alive: Iterable[NodeRecord], version: str = __version__) -> list[Verdict]:
    """Return the nodes by their version of Trawl. Pure."""
    by_version: dict[str, list[str]] = defaultdict(list)
    for one in alive:
        by_version[one.version or "an unknown version"].append(one.name)
    if not by_version:
        return [Verdict("nodes", "ok", "none runs: the next start is that of this Trawl")]
    found = []
    for other, names in sorted(by_version.items()):
        finding = f"{', '.join(sorted(names))}: {other}"
        if other == version:
            found.append(Verdict("nodes", "ok", finding))
            continue
        fix = f"replace one worker after the other by {version}: its crawlers drain, and start on the others meanwhile"
        found.append(Verdict("nodes", "note", finding, fix))
    return found


def tables(stored: int | None, needed: int) -> Verdict:
    """Return the effect on the database. Pure."""
    what = "database"
    if stored is None:
        return Verdict(what, "ok", f"it has no tables; the first worker that stores items makes version {needed}")
    if stored == needed:
        return Verdict(what, "ok", f"its tables have version {stored}, as this Trawl needs")
    if stored > needed:
        fix = "install the Trawl that made them, or a newer one"
        return Verdict(what, "bad", f"its tables have version {stored}, this Trawl needs {needed}", fix)
    finding = (
        f"its tables will go from version {stored} to {needed} when the first new worker stores items; no row is rewritten,"
        " and older workers go on storing"
    )
    return Verdict(what, "note", finding, "or do it now: trawl db upgrade")


def _of_files() -> Iterator[Verdict]:
    from redis_components.server.fleet_file import OLD_FILES

    for path in filter(None, (one.path() for one in OLD_FILES)):
        yield Verdict("files", "note", f"{path} is read for one more release", "trawl config convert")


def _of_redis() -> Iterator[Verdict]:
    url = running_url()
    if url is None:
        yield Verdict("Redis", "note", "none runs here: set TRAWL_REDIS_URL to look at another fleet")
        return
    with redis_client(url) as client:
        now = server_time(client)
        yield from nodes([one for one in Nodes(client).all() if one.alive(now)])
        for service in _services(client):
            yield layout(service, _layout_of(client, service))


def _services(client: redis.Redis) -> list[str]:
    return sorted({*declared_fleet(client), *Registry(client).desired()})


def _layout_of(client: redis.Redis, service: str) -> str | None:
    record = CrawlRecords(client).of(service)
    stored = client.hget((record.keys if record else CrawlKeys.for_spider(service)).counters(), "layout")
    return stored.decode(errors="replace") if isinstance(stored, bytes) else stored


def _of_database() -> Iterator[Verdict]:
    if "db" not in application().commands():
        return
    from forums.storage.read.read_sql import NoData, existing
    from forums.storage.schema.version import VERSION

    try:
        stored = existing().version()
    except NoData:
        stored = None
    yield tables(stored, VERSION)


def upgrade(
    check: Annotated[bool, typer.Option("--check", help="Show what will happen; nothing is changed.")] = False,
    as_json: AsJson = False,
) -> int:
    """Show what this version of Trawl will change in the running fleet and its data; run it before the fleet does.

    It compares the layout of the keys in Redis, the version of the database's tables and the versions of the nodes with this
    Trawl. **note**: something will happen. **bad**: this Trawl cannot work there (exit code 1).

    **Examples:**

        trawl upgrade --check
        trawl upgrade --check --json | jq '.[] | select(.state != "ok")'
    """
    if not check:
        raise ConfigError(
            "trawl upgrade only shows what will happen: add --check; trawl db upgrade changes the tables, trawl roll the crawlers"
        )
    return show_verdicts(list(findings()), as_json)
