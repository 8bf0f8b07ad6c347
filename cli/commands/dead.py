"""`trawl dead`: requests, items and messages that were given up, with their reasons; put them back, or delete them.

Three stores, and the same three commands for each.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, NamedTuple, TypeVar

import redis
import typer

from cli.access import redis_client, running_client
from cli.names import check_spiders, known_services, parse_since
from cli.views.options import AsJson, Newest, command_group
from cli.views.output import complain, duration, echo, report
from cli.views.tables import Column, figure, show
from redis_components.admin import dead_letters
from redis_components.admin.dead_letters import Cleared, DeadEntry, Entry
from redis_components.errors import ConfigError, TrawlError
from redis_components.items import stream
from redis_components.keys import CrawlKeys, CrawlRecords
from redis_components.server.untrusted_values import server_time
from workers.state import dead_messages
from workers.state.dead_messages import DeadMessage

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The entries that a replay or a purge is for: all of these hold."""

    names: tuple[str, ...] = ()
    """Spiders, of messages queues; none: all."""
    limit: int | None = None
    reason: str = ""
    before_s: float | None = None
    sign: bool = False


class Kept(NamedTuple):
    """The newest entries of a spider, or of the fleet's messages, and the count of all."""

    entries: list[Any]
    number: int


def _age(now: float) -> Column:
    return figure("age", lambda row: duration(now - row[1].at_s))


def _reason(rank: int) -> Column:
    return Column("reason", lambda row: row[1].reason, least=25, rank=rank, below=True)


_NAME = Column("spider", lambda row: row[0])


class _OfCrawls:
    """Lists of each crawl, which `lists` (a module) reads and changes."""

    named = "spider"

    def __init__(self, lists: Any, key: Callable[[CrawlKeys], str]) -> None:
        self._lists, self._key = lists, key

    def newest(self, client: redis.Redis, names: tuple[str, ...], limit: int) -> Mapping[str, Kept | None]:
        def ask(keys: CrawlKeys) -> Kept:
            count: Any = client.llen(self._key(keys))
            return Kept(self._lists.newest(client, keys, limit)[0], count)

        return self._each(client, names, ask)

    def replay(self, client: redis.Redis, chosen: Chosen) -> Mapping[str, Cleared | None]:
        """Put entries back, oldest first: requests and start tasks into their queues, items into their stream.

        They are tried as if for the first time. It is safe while crawlers and consumers run, and safe to repeat.
        """
        return self._each(
            client, chosen.names, lambda keys: self._lists.replay(client, keys, limit=chosen.limit, reason=chosen.reason)
        )

    def purge(self, client: redis.Redis, chosen: Chosen) -> Mapping[str, Cleared | None]:
        return self._each(
            client, chosen.names, lambda keys: self._lists.purge(client, keys, before_s=chosen.before_s, reason=chosen.reason)
        )

    def _each(self, client: redis.Redis, names: tuple[str, ...], ask: Callable[[CrawlKeys], T]) -> dict[str, T | None]:
        """Return the answers by crawl: of the named spiders, else of every service that the fleet has or had."""
        check_spiders(client, names)
        known = names or sorted(known_services(client))
        found: dict[str, T | None] = {}
        for name, keys in CrawlRecords(client).keys_of_all(dict.fromkeys(known)).items():
            try:
                found[name] = ask(keys)
            except redis.ResponseError as error:
                if "WRONGTYPE" not in str(error):
                    raise
                found[name] = None
                complain(f"{name}: a key has another type than Trawl's: trawl doctor names it, and the command that renames it")
        return found


class DeadRequests(_OfCrawls):
    """Show requests and start tasks that were given up, newest first, with the reason.

    They are kept until they are replayed or purged. `trawl dead items` shows items, `trawl dead messages` messages of the broker.

    **Examples:**

        trawl dead
        trawl dead forum_detail --limit 100 --json
        trawl dead replay forum_detail --reason "HTTP 503" --limit 100
        trawl dead purge --older-than 30d
    """

    noun, none = "requests", "Nothing was given up."
    stuck = "entries are not valid requests; left in the dead-letter list"

    def columns(self, now: float) -> list[Column]:
        kind = Column("kind", lambda row: row[1].kind.name.lower().replace("_", " "), rank=2)
        return [_NAME, kind, _age(now), Column("url", lambda row: row[1].url, least=30, rank=3, below=True), _reason(4)]

    def fields(self, entry: DeadEntry) -> dict[str, Any]:
        return {"kind": entry.kind.name.lower(), "reason": entry.reason, "url": entry.url}


class DeadItems(_OfCrawls):
    """Show items that their consumer refused, newest first, with the reason.

    They are kept until they are replayed or purged.

    **Examples:**

        trawl dead items
        trawl dead items forum_detail --limit 100 --json
        trawl dead items replay --reason "views"
        trawl dead items purge books --older-than 30d
    """

    noun, none = "items", "No item was refused."
    stuck = ""

    def columns(self, now: float) -> list[Column]:
        return [_NAME, _age(now), _reason(2), Column("item", lambda row: row[1].text, least=30, rank=3, below=True)]

    def fields(self, entry: Entry) -> dict[str, Any]:
        item = entry.payload.decode("utf-8", "backslashreplace")
        return {"reason": entry.reason, "item": item, "whole": entry.can_go_back}


class DeadQueueMessages:
    """Show messages of the broker that no worker could read or run, newest first, with the reason.

    A worker that receives a message that is not a task, or that Celery cannot run, moves it here unchanged. It stays until it is
    replayed or purged; the list keeps the newest 10,000.

    **Examples:**

        trawl dead messages
        trawl dead messages replay control --reason "which this worker does not have"
        trawl dead messages purge --older-than 30d
    """

    noun, named, none, stuck = "messages", "queue", "No message was set aside.", ""

    def columns(self, now: float) -> list[Column]:
        message = Column("message", lambda row: row[1].text, least=24, rank=2, below=True)
        return [Column("queue", lambda row: row[0]), _age(now), _reason(2), message]

    def fields(self, entry: DeadMessage) -> dict[str, Any]:
        return {"reason": entry.reason, "message": entry.text}

    def newest(self, client: redis.Redis, names: tuple[str, ...], limit: int) -> Mapping[str, Kept | None]:
        found, number = dead_messages.newest(client, limit)
        return {"messages": Kept([one for one in found if not names or one.queue in names], number)}

    def replay(self, client: redis.Redis, chosen: Chosen) -> Mapping[str, Cleared | None]:
        """Put messages back into their queues, unchanged, oldest first. A message that still cannot be run returns to this list.

        A message that was set aside for its signature needs --sign: read it first, for a worker runs it then. It is queued before
        it is deleted here: after an interruption it exists twice.
        """
        from kombu.exceptions import OperationalError

        from tasks import app as celery
        from tasks.base import IMPATIENT
        from tasks.guard.transport import replay

        with celery.connection_for_write(transport_options=IMPATIENT) as broker:
            put_back = partial(replay, connection=broker, sign=chosen.sign)
            try:
                return {"messages": dead_messages.replay(client, put_back, self._wanted(chosen), chosen.limit)}
            except OperationalError as error:
                raise TrawlError(f"the broker is away, not all messages were put back: {error}") from error

    def purge(self, client: redis.Redis, chosen: Chosen) -> Mapping[str, Cleared | None]:
        return {"messages": dead_messages.purge(client, self._wanted(chosen))}

    def _wanted(self, chosen: Chosen) -> Callable[[DeadMessage], bool]:
        return lambda one: one.is_over(chosen.reason, chosen.before_s) and (not chosen.names or one.queue in chosen.names)


DeadStore = DeadRequests | DeadItems | DeadQueueMessages
"""A kind of what was given up. An outcome None stands for a spider whose list is not Trawl's."""

REQUESTS = DeadRequests(dead_letters, CrawlKeys.dead)
ITEMS = DeadItems(stream, CrawlKeys.bad_items)
MESSAGES = DeadQueueMessages()


def list_newest(store: DeadStore, names: tuple[str, ...], limit: int, as_json: bool) -> int:
    """Print the newest entries; return the exit code, 1 where a list cannot be read."""
    with running_client(as_json) as client:
        now, found = server_time(client), store.newest(client, names, limit)
    known = {name: one for name, one in found.items() if one}
    entries = sorted(((name, entry) for name, one in known.items() for entry in one.entries), key=lambda row: -row[1].at_s)
    if store is MESSAGES:
        entries = [(entry.queue, entry) for _, entry in entries]
    rows = [{store.named: name, "at": entry.at_s, **store.fields(entry)} for name, entry in entries] if as_json else entries
    counts = {name: one.number for name, one in known.items()}
    none = store.none if not any(counts.values()) else f"No entry of the newest {limit:,} can be shown."
    show(rows, store.columns(now), as_json, empty=none, whole={"counts": counts, "entries": rows})
    for name, count in () if as_json else counts.items():
        if count > limit:
            echo(f"{name}: {count:,} {store.noun}, the newest {limit:,} are shown")
    return int(None in found.values())


def change(
    store: DeadStore, word: str, act: Callable[[redis.Redis, Chosen], Mapping[str, Cleared | None]], chosen: Chosen, as_json: bool
) -> int:
    """Replay or purge entries and print the outcome; return the exit code."""
    with redis_client() as client:
        outcomes = act(client, chosen)
    known = {name: one for name, one in outcomes.items() if one}
    report(
        as_json,
        {name: {word: one.done, "foreign": one.foreign, "stuck": one.stuck} for name, one in known.items()},
        f"{word}: {', '.join(f'{name} {one.done}' for name, one in known.items()) or 'nothing'}",
    )
    for name, one in known.items():
        if one.foreign:
            complain(f"{name}: {one.foreign} entries among the dead {store.noun} were not written by Trawl; left in place")
        if one.stuck and word == "replayed":
            complain(f"{name}: {one.stuck} {store.stuck}")
    return int(len(known) < len(outcomes))


def _commands(store: DeadStore) -> typer.Typer:
    """Return the commands of a store, with its docstrings as their help; `list` is inserted where none is named."""
    description = store.__doc__
    app = command_group(help=description)
    metavar = "QUEUE" if store is MESSAGES else "SERVICE"
    some = typer.Argument(metavar=metavar, help=f"Only of these; by default all {store.noun}.")
    of_names = Annotated[list[str] | None, some]
    of_reason = Annotated[str, typer.Option(metavar="TEXT", help="Only those whose reason contains this.")]
    of_sign = Annotated[
        bool,
        typer.Option("--sign", hidden=store is not MESSAGES, help="Sign them with this machine's key, as if you had sent them."),
    ]

    @app.command("list", help=description)
    def list_entries(
        names: of_names = None,
        limit: Newest = 20,
        as_json: AsJson = False,
    ) -> int:
        return list_newest(store, tuple(names or ()), limit, as_json)

    @app.command(help=store.replay.__doc__)
    def replay(
        names: of_names = None,
        limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="At most this many of each.")] = None,
        reason: of_reason = "",
        sign: of_sign = False,
        as_json: AsJson = False,
    ) -> int:
        chosen = Chosen(names=tuple(names or ()), limit=limit, reason=reason, sign=sign)
        return change(store, "replayed", store.replay, chosen, as_json)

    @app.command(help=f"Delete {store.noun} permanently. Needs --older-than or --yes.")
    def purge(
        names: of_names = None,
        older_than: Annotated[str | None, typer.Option(metavar="AGE", help="Only those older than 30d, 12h, 10m, 5s.")] = None,
        yes: Annotated[bool, typer.Option("--yes", help="Delete all of them.")] = False,
        reason: of_reason = "",
        as_json: AsJson = False,
    ) -> int:
        if older_than is None and not yes:
            raise ConfigError(f"purge deletes {store.noun} permanently: choose them with --older-than 30d, or use --yes for all")
        before_s = parse_since(older_than, option="--older-than").timestamp() if older_than else None
        chosen = Chosen(names=tuple(names or ()), reason=reason, before_s=before_s)
        return change(store, "purged", store.purge, chosen, as_json)

    return app


app = _commands(REQUESTS)
app.add_typer(_commands(ITEMS), name="items")
app.add_typer(_commands(MESSAGES), name="messages")
