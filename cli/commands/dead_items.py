"""`trawl dead items`: items that their consumer refused, with the reasons; put them back, or forget them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import redis

from cli.views.dead import refused_table
from cli.views.output import complain, console, iso, print_json, say
from redis_components.admin.dead_letters import Cleared
from redis_components.errors import ConfigError
from redis_components.items.refused import newest
from redis_components.keys import CrawlKeys
from redis_components.server.replies import server_time

T = TypeVar("T")

ACTS = {"replay": "replayed", "purge": "purged"}


def split_words(words: list[str] | None, spiders: list[str] | None) -> tuple[str, list[str]]:
    """What to do ("", "replay" or "purge") and the services that are named. Raises ConfigError for two things at once."""
    acts = [word for word in words or [] if word in ACTS]
    if len(acts) > 1:
        raise ConfigError(f"{' '.join(acts)}: say one of replay and purge; a service of that name goes behind --spider")
    return acts[0] if acts else "", [*(word for word in words or [] if word not in ACTS), *(spiders or [])]


def of_each(crawls: Mapping[str, CrawlKeys], ask: Callable[[CrawlKeys], T]) -> dict[str, T]:
    """The answers by crawl; a crawl with a key of another type is named and left out, the others go on."""
    found = {}
    for name, keys in crawls.items():
        try:
            found[name] = ask(keys)
        except redis.ResponseError as error:
            if "WRONGTYPE" not in str(error):
                raise
            complain(
                f"{name}: a key of it has another type than Trawl's: trawl doctor names it, trawl doctor --repair sets it aside"
            )
    return found


def show(client: redis.Redis, crawls: Mapping[str, CrawlKeys], limit: int, *, as_json: bool) -> int:
    """Print the newest refused items of these crawls, and how many there are; 1 where one of them cannot be read."""
    now = server_time(client)
    found = of_each(crawls, lambda keys: newest(client, keys, limit))
    entries = sorted(((name, one) for name, (some, _) in found.items() for one in some), key=lambda pair: -pair[1].at_s)
    if as_json:
        shown = [
            {
                "spider": name,
                "at": iso(one.at_s),
                "reason": one.reason,
                "item": one.payload.decode("utf-8", "backslashreplace"),
                "whole": one.can_go_back,
            }
            for name, one in entries
        ]
        print_json({"refused": {name: length for name, (_, length) in found.items()}, "items": shown})
        return int(len(found) < len(crawls))
    if entries:
        console().print(refused_table(entries, now))
    for name, (some, length) in found.items():
        if length > len(some):
            say(f"{name}: {length:,} refused items, the newest {len(some):,} are shown")
    if not any(length for _, length in found.values()):
        say("No item was refused.")
    return int(len(found) < len(crawls))


def tell(act: str, outcomes: Mapping[str, Cleared], keys: Mapping[str, CrawlKeys], *, as_json: bool) -> None:
    """Print what became of a replay or a purge."""
    word = ACTS[act]
    if as_json:
        print_json({name: {word: one.done, "foreign": one.foreign, "stuck": one.stuck} for name, one in outcomes.items()})
    else:
        say(f"{word}: {', '.join(f'{name} {one.done}' for name, one in outcomes.items()) or 'nothing'}")
    for name, one in outcomes.items():
        if one.foreign:
            complain(f"{keys[name].bad_items()}: {one.foreign} entries were not written by Trawl; left in place")
        if one.stuck and act == "replay":
            complain(f"{name}: of {one.stuck} items an older version stored only the beginning; they cannot be replayed and stay")
