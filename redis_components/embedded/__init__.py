"""The project's own Redis: used by every command that is started without TRAWL_REDIS_URL.

Each command, in any terminal, calls `redis_url()` and gets the same server. The first one starts it; when the last one
is gone, however it went, the server is stopped and nothing is left but its data. `server.py` has one server process and its
program, `files.py` the folder and its locks, `__main__.py` the keeper, which runs the server for all. A process joins so:

1. Hold `users.lock`, shared, for the life of the process: while any process does, the keeper keeps the server.
2. If `keeper.lock` is free, the process that gets it starts the keeper and hands the lock down to it, so that two can never
   be started, and a `server.json` found at that moment is left over from a killed keeper.
3. Otherwise wait until `server.json` is there and the server answers.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import redis_components
from redis_components.errors import RedisUnavailable
from redis_components.server.variables import project_dir, variable

from . import files, server
from .child_process import ChildProcess
from .files import ServerFolder, ServerState, data_dir
from .server import ServerBinary, choose

__all__ = ["ServerState", "data_dir", "project_dir", "redis_url", "status", "stop"]

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 15.0


@dataclass(frozen=True, kw_only=True)
class Membership:
    """This process's hold on the server of one place. Children made by `fork` share it."""

    place: ServerFolder
    lock: int  # descriptor of users.lock

    def is_good(self) -> bool:
        """Return True if we still hold the lock (a daemon may have closed its files) and a keeper is there."""
        try:
            mine, now = os.fstat(self.lock), self.place.users.stat()
            return (mine.st_dev, mine.st_ino) == (now.st_dev, now.st_ino) and files.is_held(self.place.keeper)
        except OSError:
            return False


_memberships: dict[Path, Membership] = {}


def redis_url() -> str:
    """Return the URL of the Redis to use: TRAWL_REDIS_URL, else the embedded server of `data_dir()`, which then runs at least as
    long as this process does.

    Every process with the same data folder gets the same server; the first one starts it (0.2 s). Later calls cost microseconds,
    and start it again, on the same port, should its keeper have been killed. Raises RedisUnavailable.
    """
    if named := variable("TRAWL_REDIS_URL"):
        return named
    place = ServerFolder.current()
    member = _memberships.get(place.root)
    if member and member.is_good() and (state := place.state()):
        return state.url
    _memberships[place.root], url = _join(place)
    return url


def status() -> ServerState | None:
    """Return the embedded server of `data_dir()`, if one runs. Does not start it."""
    place = ServerFolder.current()
    if not place.keeper.exists() or not files.is_held(place.keeper):
        return None
    return place.state()


def stop() -> bool:
    """Stop the embedded server of `data_dir()`, in use or not; its next user starts it again. False if none runs.

    Raises RedisUnavailable when it does not end in time.
    """
    place = ServerFolder.current()
    if not place.keeper.exists():
        return False
    deadline = time.monotonic() + STOP_TIMEOUT_S
    signalled = None
    while files.is_held(place.keeper):
        # A process that gets the lock removes the state of the keeper before it, so this pid is of the keeper that holds it now.
        state = place.state()
        if state and state.keeper != signalled:
            signalled = state.keeper
            with contextlib.suppress(ProcessLookupError):
                os.kill(state.keeper, signal.SIGTERM)
        if time.monotonic() > deadline:
            raise RedisUnavailable(f"the embedded Redis did not end within {STOP_TIMEOUT_S:g} s: see {place.log}")
        time.sleep(0.02)
    return signalled is not None


def _join(place: ServerFolder) -> tuple[Membership, str]:
    place.create()
    # The exclusive lock is taken for longer than an instant only by a keeper that is stopping its server.
    lock = files.acquire(place.users, exclusive=False, timeout_s=STOP_TIMEOUT_S)
    if lock is None:
        raise RedisUnavailable(f"the last embedded Redis in {place.root} does not finish stopping: see {place.log}")
    try:
        return Membership(place=place, lock=lock), _find_or_start(place)
    except BaseException:
        os.close(lock)
        raise


def _find_or_start(place: ServerFolder) -> str:
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        with files.held(place.keeper) as lock:
            if lock is not None:
                place.withdraw()
                _start_keeper(place, choose(), lock)
        state = place.state()
        if state and server.is_ready(state.url):
            return state.url
        if time.monotonic() > deadline:
            raise _late(place)
        time.sleep(0.01)


def _start_keeper(place: ServerFolder, binary: ServerBinary, lock: int) -> None:
    """Start the keeper, which takes over `lock`, and wait until it reports the server's state."""
    command = [sys.executable, "-m", "redis_components.embedded", str(place.root), str(binary.path)]
    try:
        place.log.touch(mode=0o600)
        log = place.log.open("ab")
    except OSError as exc:
        raise place.cannot_write(exc) from exc
    with log:
        starter = ChildProcess(
            command,
            cwd=Path(redis_components.__file__).parents[1],  # `-m` finds the package there, installed or not
            stdout=subprocess.PIPE,
            stderr=log,
            pass_fds=(lock,),
        )
    with starter:
        assert starter.stdout is not None
        report = select.select([starter.stdout], [], [], START_TIMEOUT_S)[0] and starter.stdout.readline()
    if report == []:
        raise _late(place)
    if not report:
        raise RedisUnavailable(f"the keeper of the embedded Redis ended without a word: see {place.log}")
    if error := json.loads(report)["error"]:
        raise RedisUnavailable(error)


def _late(place: ServerFolder) -> RedisUnavailable:
    return RedisUnavailable(
        f"the embedded Redis in {place.root} does not answer within {START_TIMEOUT_S:g} s;"
        f" it may still be loading its data: try again, or see {place.log}"
    )
