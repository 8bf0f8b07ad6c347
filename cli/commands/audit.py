"""`trawl audit`: who changed what, when and from where."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from cli.access.redis import NOTHING, redis_client, running_url
from cli.views.output import console, iso, plain_table, print_json, say
from workers.state.audit import latest


def audit(
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=10_000, metavar="N", help="At most so many, the newest first.")
    ] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="Print each as a line of JSON.")] = False,
) -> int:
    """Show the commands and tasks that changed something: who, when, from where, what, and what came of it.

    Of the whole fleet, from Redis, which keeps about 10,000. Each machine also has its own commands in `audit.jsonl` of its data
    folder, which outlives Redis. Passwords in URLs and values of what is named like a secret are masked.

    **Examples:**

        trawl audit
        trawl audit --limit 1000 --json
    """
    url = running_url()
    if url is None:
        say(NOTHING)
        return 0
    with redis_client(url) as client:
        found = latest(client, limit)
    if as_json:
        for act in found:
            print_json(asdict(act))
        return 0
    if not found:
        say("nothing was changed yet")
        return 0
    table = plain_table("when", "who", "from", "what", "outcome")
    for act in found:
        table.add_row(iso(act.at), act.by, act.origin, " ".join(act.what), act.outcome)

    console().print(table)
    return 0
