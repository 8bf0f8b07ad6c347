"""`trawl audit`: the changes that commands and tasks made, and the record that each changing command leaves in Redis."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated

import redis
import typer

from cli.access import redis_client, running_client, running_url
from cli.views.options import AsJson, Newest
from cli.views.output import iso
from cli.views.tables import Columns, show
from redis_components.errors import TrawlError
from redis_components.server.printable import without_secrets
from redis_components.server.untrusted_values import MOST_ENTRIES
from redis_components.server.url import impatient
from workers.fleet.holds import who
from workers.state.keys import FleetKeys
from workers.state.reports import Act, latest


def audit(
    limit: Newest = 50,
    act: Annotated[
        str | None, typer.Option(metavar="WORD", help="Only acts that begin with this word, as limit or pause.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Show the commands and tasks that changed something, the newest first: user, time, origin, act and outcome.

    Of the whole fleet, from Redis, which keeps about 10,000; each is an event in the database, too. Passwords in URLs and values
    that are named like a secret are masked.

    **Examples:**

        trawl audit
        trawl audit --limit 1000 --json
        trawl audit --act limit
    """
    with running_client(as_json) as client:
        found = [one for one in latest(client, limit if act is None else MOST_ENTRIES) if act in (None, one.what[0])][:limit]
    columns: Columns = {
        "when": lambda act: iso(act.at),
        "who": "by",
        "from": "origin",
        "what": lambda act: " ".join(act.what),
        "outcome": "outcome",
    }
    show(found, columns, as_json, empty="nothing was changed yet")
    return 0


def record(arguments: Sequence[str], code: int) -> None:
    """Keep a record of the command. Without Redis there is none: a command that changes something needs it."""
    act = Act(
        at=time.time(),
        by=who(),
        what=without_secrets(arguments),
        outcome="done" if code == 0 else f"exit code {code}",
        origin=os.environ.get("SSH_CLIENT", "").partition(" ")[0],
    )
    with suppress(TrawlError, redis.RedisError):  # the command has reported what is wrong with Redis
        if url := running_url():
            with redis_client(impatient(url, 2.0)) as client:
                act.add_to(client, FleetKeys().audit())
