"""`trawl dead`: requests, start tasks and items that were given up, with their reasons; put them back, or forget them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

import redis
import typer

from cli.access.names import check_spiders
from cli.access.redis import NOTHING, redis_client, running_url
from cli.access.values import parse_since, refuse_own_options
from cli.views.dead import dead_table
from cli.views.output import complain, console, iso, print_json, say
from redis_components.admin.crawl_records import CrawlRecords
from redis_components.admin.dead_letters import Cleared, DeadEntry, newest
from redis_components.errors import ConfigError
from redis_components.items import refused as refused_items
from redis_components.keys import CrawlKeys
from redis_components.server.replies import server_time
from workers.fleet.sizes import desired_fleet
from workers.state.registry import Registry

from . import dead_items, dead_messages
from .dead_items import of_each

app = typer.Typer(invoke_without_command=True, rich_markup_mode="markdown")

app.add_typer(dead_messages.app, name="messages")

Spiders = Annotated[list[str] | None, typer.Option("--spider", "-s", metavar="NAME", help="Only this spider; may be repeated.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one line of JSON.")]


@app.callback()
def dead(
    context: typer.Context,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="Newest entries of each spider.")] = 20,
    spiders: Spiders = None,
    as_json: AsJson = False,
) -> int:
    """Show requests and start tasks that were given up, newest first, with the reason; `trawl dead items` shows items.

    They are kept until they are replayed or purged. Messages of the broker are listed by `trawl dead messages`.

    **Examples:**

        trawl dead
        trawl dead --spider forum_detail --limit 100 --json
        trawl dead replay --reason "HTTP 503"
        trawl dead purge --older-than 30d
        trawl dead items
    """
    if context.invoked_subcommand is not None:
        refuse_own_options(context, given=bool(spiders or as_json))
        return 0

    url = running_url()
    if url is None:
        print_json({"running": False}) if as_json else say(NOTHING)
        return 0
    with redis_client(url) as client:
        now = server_time(client)
        crawls = _crawls(client, spiders)
        seen = of_each(crawls, lambda keys: newest(client, keys, limit))
        counts = {name: client.llen(crawls[name].dead()) for name in seen}
        refused = of_each({name: crawls[name] for name in seen}, lambda keys: client.llen(keys.bad_items()))
    entries = sorted(
        ((name, entry) for name, (found, _) in seen.items() for entry in found), key=lambda one: one[1].at_s, reverse=True
    )
    if as_json:
        print_json({"dead": counts, "refused_items": refused, "entries": [_json(name, entry) for name, entry in entries]})
    elif entries:
        console().print(dead_table(entries, now))
    elif not any(counts.values()):
        say("Nothing was given up.")
    if not as_json and any(refused.values()):
        listed = ", ".join(f"{name} {count:,}" for name, count in refused.items() if count)
        say(f"Refused items: {listed}; trawl dead items shows them.")
    _name_foreign({crawls[name].dead(): foreign for name, (_, foreign) in seen.items()})
    return int(len(refused) < len(crawls))


@app.command()
def replay(
    spiders: Spiders = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="At most this many entries of each spider, oldest first.")
    ] = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Only entries whose reason contains this.")] = "",
    as_json: AsJson = False,
) -> int:
    """Put dead requests and start tasks back into their queues, as if they had never been tried.

    It is safe while crawlers run, and safe to repeat.

    **Examples:**

        trawl dead replay
        trawl dead replay --spider forum_detail --reason "HTTP 503" --limit 100
    """
    from redis_components.admin import dead_letters as dead

    return _clear("replayed", spiders, as_json, lambda client, keys: dead.replay(client, keys, limit=limit, reason=reason))


@app.command()
def purge(
    spiders: Spiders = None,
    older_than: Annotated[str | None, typer.Option(metavar="AGE", help="Only entries older than 30d, 12h, 10m, 5s.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Delete all of them.")] = False,
    as_json: AsJson = False,
) -> int:
    """Delete dead letters permanently. Needs --older-than or --yes.

    **Examples:**

        trawl dead purge --older-than 30d
        trawl dead purge --spider forum_list --yes
    """
    from redis_components.admin import dead_letters as dead

    if older_than is None and not yes:
        raise ConfigError("purge deletes requests permanently: choose them with --older-than 30d, or use --yes for all")
    before_s = parse_since(older_than, option="--older-than").timestamp() if older_than else None
    return _clear("purged", spiders, as_json, lambda client, keys: dead.purge(client, keys, before_s=before_s))


def _clear(word: str, spiders: list[str] | None, as_json: bool, act: Callable[[redis.Redis, CrawlKeys], Cleared]) -> int:

    with redis_client() as client:
        crawls = _crawls(client, spiders)
        outcomes = of_each(crawls, lambda keys: act(client, keys))
    if as_json:
        print_json({name: {word: one.done, "foreign": one.foreign, "stuck": one.stuck} for name, one in outcomes.items()})
    else:
        say(f"{word}: {', '.join(f'{name} {one.done}' for name, one in outcomes.items())}")
    _name_foreign({crawls[name].dead(): one.foreign for name, one in outcomes.items()})
    for name, one in outcomes.items():
        if one.stuck and word == "replayed":
            complain(f"{name}: {one.stuck} entries are not valid requests; left in the dead-letter list")
    return int(len(outcomes) < len(crawls))


@app.command()
def items(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="replay|purge|SERVICE", help="The action (default: show), and the services."),
    ] = None,
    spiders: Spiders = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="Newest to show (20), or oldest to replay (all), of each.")
    ] = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Replay or purge only those whose reason contains this.")] = "",
    older_than: Annotated[str | None, typer.Option(metavar="AGE", help="Purge only those older than 30d, 12h, 10m, 5s.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Purge all of them.")] = False,
    as_json: AsJson = False,
) -> int:
    """Show items that their consumer refused, newest first, with the reason. They are kept until they are replayed or purged.

    `replay` puts them back into the item stream, oldest first; `purge` deletes them permanently.

    **Examples:**

        trawl dead items
        trawl dead items forum_detail --limit 100 --json
        trawl dead items replay --reason "views"
        trawl dead items purge books --older-than 30d
    """
    act, names = dead_items.split_words(words, spiders)
    if act != "purge" and (older_than or yes):
        raise ConfigError("--older-than and --yes need purge: trawl dead items purge")
    if act == "purge" and not (older_than or yes):
        raise ConfigError("purge deletes items permanently: choose them with --older-than 30d, or use --yes for all")
    if not act and reason:
        raise ConfigError("--reason needs replay or purge: trawl dead items replay --reason TEXT")
    if act == "purge" and limit:
        raise ConfigError("--limit cannot be combined with purge: choose the items with --older-than or --reason")
    before_s = parse_since(older_than, option="--older-than").timestamp() if older_than else None
    if not act and running_url() is None:
        say(NOTHING)
        return 0
    with redis_client() as client:
        crawls = _crawls(client, names)
        if not act:
            return dead_items.show(client, crawls, 20 if limit is None else limit, as_json=as_json)
        if act == "replay":
            outcomes = of_each(crawls, lambda keys: refused_items.replay(client, keys, limit=limit, reason=reason))
        else:
            outcomes = of_each(crawls, lambda keys: refused_items.purge(client, keys, before_s=before_s, reason=reason))
    dead_items.tell(act, outcomes, crawls, as_json=as_json)
    return int(len(outcomes) < len(crawls))


def _crawls(client: redis.Redis, spiders: list[str] | None) -> dict[str, CrawlKeys]:
    """The keys of the crawls to look at: of those that were named, else of every service that the fleet has or had."""
    records, registry = CrawlRecords(client), Registry(client)
    if spiders:
        check_spiders(client, spiders)
        return records.keys_of_all(dict.fromkeys(spiders))
    return records.keys_of_all(sorted({*desired_fleet(registry), *records.all(), *(one.spider for one in registry.crawlers())}))


def _name_foreign(foreign: Mapping[str, int]) -> None:
    for key, count in foreign.items():
        if count:
            complain(f"{key}: {count} entries were not written by Trawl; left in place")


def _json(spider: str, entry: DeadEntry) -> dict[str, object]:

    kind = entry.kind.name.lower()
    return {"spider": spider, "at": iso(entry.at_s), "kind": kind, "reason": entry.reason, "url": entry.url}
