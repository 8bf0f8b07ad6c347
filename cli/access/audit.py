"""What a command that changes something leaves: a line in `audit.jsonl` of the data folder, and an entry in Redis."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import redis

from cli.views.output import complain
from redis_components.embedded import data_dir
from redis_components.embedded.private_files import FILE, private_folder
from redis_components.errors import TrawlError
from redis_components.server.url import impatient
from workers.fleet.holds import who
from workers.state.audit import Act, append, without_secrets

from .redis import redis_client, running_url

FILE_NAME = "audit.jsonl"
MOST_BYTES = 10 << 20  # then it becomes `audit.jsonl.1`


def record(arguments: Sequence[str], code: int) -> None:
    """Keep what was done. A failure is said, and changes nothing about the command."""
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
    with suppress(TrawlError, redis.RedisError):  # the file has it, and the command has said what is wrong with Redis
        if url := running_url():
            with redis_client(impatient(url, 2.0)) as client:
                append(client, act)


def audit_file() -> Path:
    """The file of this data folder."""
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
