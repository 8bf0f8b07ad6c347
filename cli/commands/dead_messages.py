"""`trawl dead messages`: messages of the broker that no worker could read or run; put them back, or forget them."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from cli.access.redis import NOTHING, redis_client, running_url
from cli.access.values import parse_since, refuse_own_options
from cli.views.output import console, duration, iso, plain_table, print_json, say
from redis_components.errors import ConfigError, TrawlError
from redis_components.server.replies import server_time
from workers.state.dead_messages import DeadMessage, DeadMessages

app = typer.Typer(invoke_without_command=True, rich_markup_mode="markdown")

AsJson = Annotated[bool, typer.Option("--json", help="Print one line of JSON.")]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="Only messages whose reason contains this.")]
QueueName = Annotated[str | None, typer.Option("--queue", "-q", metavar="NAME", help="Only messages of this queue.")]


@app.callback()
def messages(
    context: typer.Context,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="Newest messages.")] = 20,
    as_json: AsJson = False,
) -> int:
    """Show messages of the broker that no worker could read or run, newest first, with the reason.

    A worker that receives a message that is not a task, or that Celery cannot run, moves it here unchanged and goes on. It stays
    until it is replayed or purged; the list keeps the newest 10,000.

    **Examples:**

        trawl dead messages
        trawl dead messages replay --reason "which this worker does not have"
        trawl dead messages purge --older-than 30d
    """
    if context.invoked_subcommand is not None:
        refuse_own_options(context, given=as_json)
        return 0

    url = running_url()
    if url is None:
        print_json({"running": False}) if as_json else say(NOTHING)
        return 0
    with redis_client(url) as client:
        kept = DeadMessages(client)
        count, now = len(kept), server_time(client)
        found, foreign = kept.newest(limit)
    if as_json:
        rows = [{"at": iso(one.at_s), "queue": one.queue, "reason": one.reason, "message": one.text} for one in found]
        print_json({"messages": count, "foreign": foreign, "entries": rows})
    elif found:
        console().print(_table(found, now))
    else:
        say("No message was set aside.")
    return 0


@app.command()
def replay(
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="At most this many messages, newest first.")] = None,
    reason: Reason = "",
    queue: QueueName = None,
    sign: Annotated[bool, typer.Option("--sign", help="Sign them with this machine's key, as if you had sent them.")] = False,
    as_json: AsJson = False,
) -> int:
    """Put messages back into their queues, unchanged. A message that still cannot be run returns to this list.

    One that was set aside for its signature needs --sign: read it first, for a worker does what it says.

    A message is queued before it is deleted here: if the command is interrupted in between, it exists twice.

    **Examples:**

        trawl dead messages replay
        trawl dead messages replay --queue control --reason "names the task"
    """
    from kombu.exceptions import OperationalError

    from tasks import app as celery
    from tasks.guard.refused import replay as put_back
    from tasks.routing import IMPATIENT

    done = 0
    with redis_client() as client, celery.connection_for_write(transport_options=IMPATIENT) as broker:
        kept = DeadMessages(client)
        try:
            for one in _chosen(kept, limit, reason, queue, None):
                put_back(one.form, one.raw, one.queue, broker, sign=sign)
                done += kept.forget(one)
        except OperationalError as error:
            raise TrawlError(f"the broker is away, {done} messages were put back: {error}") from error
    return _said("replayed", done, as_json)


@app.command()
def purge(
    older_than: Annotated[str | None, typer.Option(metavar="AGE", help="Only messages older than 30d, 12h, 10m, 5s.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Delete all of them.")] = False,
    reason: Reason = "",
    queue: QueueName = None,
    as_json: AsJson = False,
) -> int:
    """Delete messages permanently. Needs --older-than or --yes.

    **Examples:**

        trawl dead messages purge --older-than 30d
        trawl dead messages purge --queue control --yes
    """
    if older_than is None and not yes:
        raise ConfigError("purge deletes messages permanently: choose them with --older-than 30d, or use --yes for all")
    before_s = parse_since(older_than, option="--older-than").timestamp() if older_than else None
    with redis_client() as client:
        kept = DeadMessages(client)
        done = sum(kept.forget(one) for one in _chosen(kept, None, reason, queue, before_s))
    return _said("purged", done, as_json)


def _chosen(kept: DeadMessages, limit: int | None, reason: str, queue: str | None, before_s: float | None) -> list[DeadMessage]:
    """The oldest first: they go back in the order in which they came."""
    chosen: list[DeadMessage] = []
    for batch in kept.batches():
        chosen += [
            one
            for one in reversed(batch)
            if reason.casefold() in one.reason.casefold()
            and queue in (None, one.queue)
            and (before_s is None or one.at_s < before_s)
        ]
        if limit is not None and len(chosen) >= limit:
            break
    return chosen[:limit][::-1]


def _said(word: str, done: int, as_json: bool) -> int:

    print_json({word: done}) if as_json else say(f"{word}: {done}")
    return 0


def _table(found: list[DeadMessage], now: float) -> object:

    table = plain_table("queue", "age", "reason", "message")
    for one in found:
        table.add_row(*map(Text, (one.queue, duration(now - one.at_s), one.reason, one.text)))
    return table
