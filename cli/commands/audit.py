"""`trawl audit`: the changes that commands and tasks made, and the record that each changing command leaves.

A record is a line in `audit.jsonl` of the data folder, and an entry in Redis.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import redis
import typer

from cli.access import redis_client, running_client, running_url
from cli.views.options import AsJson, Newest
from cli.views.output import complain, iso
from cli.views.tables import Columns, show
from redis_components.embedded import data_dir
from redis_components.embedded.files import FILE, private_folder
from redis_components.errors import TrawlError
from redis_components.server.url import impatient
from workers.fleet.holds import who
from workers.state.reports import KEPT, Act, append, latest, without_secrets

FILE_NAME = "audit.jsonl"
MOST_BYTES = 10 << 20  # then it becomes `audit.jsonl.1`


def audit(
    limit: Newest = 50,
    act: Annotated[
        str | None, typer.Option(metavar="WORD", help="Only acts that begin with this word, as limit or pause.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Show the commands and tasks that changed something, the newest first: user, time, origin, act and outcome.

    Of the whole fleet, from Redis, which keeps about 10,000. Each machine also has its own commands in `audit.jsonl` of its data
    folder, which outlives Redis. Passwords in URLs and values that are named like a secret are masked.

    **Examples:**

        trawl audit
        trawl audit --limit 1000 --json
        trawl audit --act limit
    """
    with running_client(as_json) as client:
        found = [one for one in latest(client, limit if act is None else KEPT) if act in (None, one.what[0])][:limit]
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
    """Keep a record of the command. A failure is reported, and does not change the command's outcome."""
    act = Act(
        at=time.time(),
        by=who(),
        what=without_secrets(arguments),
        outcome="done" if code == 0 else f"exit code {code}",
        origin=os.environ.get("SSH_CLIENT", "").partition(" ")[0],
    )
    try:
        _to_file(act.to_json())
    except OSError as error:
        complain(f"the audit {audit_file()} could not be written: {error.strerror}")
    except TrawlError as error:
        complain(f"the audit could not be written: {error}")
    with suppress(TrawlError, redis.RedisError):  # the file has it, and the command has reported what is wrong with Redis
        if url := running_url():
            with redis_client(impatient(url, 2.0)) as client:
                append(client, act)


def audit_file() -> Path:
    """Return the file of this data folder."""
    return data_dir() / FILE_NAME


def _to_file(line: str) -> None:
    file = audit_file()
    private_folder(file.parent)
    with suppress(FileNotFoundError):
        if file.stat().st_size > MOST_BYTES:
            file.replace(file.with_name(f"{FILE_NAME}.1"))
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, FILE)
    with os.fdopen(handle, "a") as stream:
        stream.write(f"{line}\n")
