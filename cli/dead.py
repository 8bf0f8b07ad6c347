"""`trawl dead`: requests and start tasks that were given up, with their reasons; put them back, or forget them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import redis

    from redis_components.dead import Cleared, DeadEntry
    from redis_components.keys import CrawlKeys

app = typer.Typer(invoke_without_command=True, rich_markup_mode="markdown")

Spiders = Annotated[list[str] | None, typer.Option("--spider", "-s", metavar="NAME", help="Only this one; may be repeated.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one line of JSON.")]


@app.callback()
def dead(
    context: typer.Context,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="Newest entries of each spider.")] = 20,
    spiders: Spiders = None,
    as_json: AsJson = False,
) -> int:
    """Show requests and start tasks that were given up, newest first, with the reason.

    They are kept until they are replayed or purged.

    **Examples:**

        trawl dead
        trawl dead --spider forum_detail --limit 100 --json
        trawl dead replay --reason "HTTP 503"
        trawl dead purge --older-than 30d
    """
    if context.invoked_subcommand is not None:
        if spiders or as_json or context.get_parameter_source("limit").name == "COMMANDLINE":  # type: ignore[union-attr]  # it was parsed
            raise typer.BadParameter(f"options of {context.invoked_subcommand} stand behind it")
        return 0
    from redis_components.answers import server_time
    from redis_components.dead import newest
    from redis_components.keys import CrawlKeys

    from .output import console, print_json
    from .redis_access import redis_client, running_url
    from .status import NOTHING

    url = running_url()
    if url is None:
        print_json({"running": False}) if as_json else print(NOTHING)
        return 0
    with redis_client(url) as client:
        now = server_time(client)
        seen = {name: newest(client, CrawlKeys.for_spider(name), limit) for name in _named(client, spiders)}
        counts = {name: client.llen(CrawlKeys.for_spider(name).dead()) for name in seen}
    entries = sorted(
        ((name, entry) for name, (found, _) in seen.items() for entry in found), key=lambda one: one[1].at_s, reverse=True
    )
    if as_json:
        print_json({"dead": counts, "entries": [_json(name, entry) for name, entry in entries]})
    elif entries:
        console().print(_table(entries, now))
    elif not any(counts.values()):
        print("Nothing was given up.")
    _name_foreign({name: foreign for name, (_, foreign) in seen.items()})
    return 0


@app.command()
def replay(
    spiders: Spiders = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="Most entries of each spider, oldest first.")] = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Only entries whose reason contains this.")] = "",
    as_json: AsJson = False,
) -> int:
    """Put requests back into the queue, and start tasks back into their key, as if they had never been tried.

    Safe beside crawlers, and when it is repeated.

    **Examples:**

        trawl dead replay
        trawl dead replay --spider forum_detail --reason "HTTP 503" --limit 100
    """
    from redis_components import dead

    return _clear("replayed", spiders, as_json, lambda client, keys: dead.replay(client, keys, limit=limit, reason=reason))


@app.command()
def purge(
    spiders: Spiders = None,
    older_than: Annotated[str | None, typer.Option(metavar="AGE", help="Only entries older than 30d, 12h, 10m, 5s.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Forget all of them.")] = False,
    as_json: AsJson = False,
) -> int:
    """Forget what was given up, for good. Needs --older-than or --yes.

    **Examples:**

        trawl dead purge --older-than 30d
        trawl dead purge --spider forum_list --yes
    """
    from redis_components import dead
    from redis_components.errors import ConfigError

    from .times import parse_since

    if older_than is None and not yes:
        raise ConfigError("this forgets requests for good: say which with --older-than 30d, or --yes for all")
    before_s = parse_since(older_than, option="--older-than").timestamp() if older_than else None
    return _clear("purged", spiders, as_json, lambda client, keys: dead.purge(client, keys, before_s=before_s))


def _clear(word: str, spiders: list[str] | None, as_json: bool, act: Callable[[redis.Redis, CrawlKeys], Cleared]) -> int:
    from redis_components.keys import CrawlKeys

    from .output import print_json
    from .redis_access import redis_client

    with redis_client() as client:
        outcomes = {name: act(client, CrawlKeys.for_spider(name)) for name in _named(client, spiders)}
    if as_json:
        print_json({name: {word: one.done, "foreign": one.foreign, "stuck": one.stuck} for name, one in outcomes.items()})
    else:
        print(f"{word}: {', '.join(f'{name} {one.done}' for name, one in outcomes.items())}")
    _name_foreign({name: one.foreign for name, one in outcomes.items()})
    for name, one in outcomes.items():
        if one.stuck and word == "replayed":
            print(f"trawl: {name}: {one.stuck} entries were no requests when they were in the queue; kept", file=sys.stderr)
    return 0


def _named(client: redis.Redis, spiders: list[str] | None) -> list[str]:
    """The spiders to look at: those that were named, else the fleet's services."""
    from redis_components.registry import Registry
    from workers.fleet import desired_fleet

    if spiders:
        return list(dict.fromkeys(spiders))
    registry = Registry(client)
    return sorted({*desired_fleet(registry), *(one.spider for one in registry.crawlers())})


def _name_foreign(foreign: Mapping[str, int]) -> None:
    from redis_components.keys import CrawlKeys

    for name, count in foreign.items():
        if count:
            print(f"trawl: {CrawlKeys.for_spider(name).dead()}: {count} entries are not Trawl's; kept", file=sys.stderr)


def _json(spider: str, entry: DeadEntry) -> dict[str, object]:
    from .output import iso

    kind = entry.kind.name.lower()
    return {"spider": spider, "at": iso(entry.at_s), "kind": kind, "reason": entry.reason, "url": entry.url}


def _table(entries: list[tuple[str, DeadEntry]], now: float) -> object:
    from rich.text import Text

    from .output import duration, plain_table

    table = plain_table()
    for column in ("spider", "kind", "age", "url", "reason"):
        table.add_column(column, overflow="fold")
    for spider, entry in entries:
        cells = (spider, entry.kind.name.lower().replace("_", " "), duration(now - entry.at_s), entry.url, entry.reason)
        table.add_row(*map(Text, cells))  # as text: what is in Redis may look like rich's markup
    return table
