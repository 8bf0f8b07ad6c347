"""Lua scripts as files, called by the names in their headers; and tries of a command while the server cannot serve.

A package keeps its scripts in its folder `lua`, one operation a file, in subfolders by topic; names are unique in a package.
Each `<name>.lua` starts with a header that is parsed, not only read:

    -- One sentence that describes the script.
    -- (more lines of prose, if needed)
    --
    -- KEYS[1] slot   (string)  its content
    -- ARGV[1] token  (text)    its meaning, with its unit; a key or argument of a type with `any number` is the last of
    its kind and takes a list
    -- Returns: the reply
    -- Retry: safe | unsafe, and why

and its body begins with `local slot = KEYS[1]` / `local token = ARGV[1]`, so that the rest uses names, not numbers. `-- include:
name` alone on a line inserts `redis_components/lua/lib/<name>.lua`; within a block, its definitions are made only where the
block runs.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha1
from pathlib import Path
from typing import Any, TypeVar

import redis
import redis.asyncio
from redis import exceptions
from redis.exceptions import NoScriptError

LUA = Path(__file__).parents[1] / "lua"
"""Scripts of the frontier and the fleet, and `lib`, from which scripts of any package may include."""
_FIELD = re.compile(r"^-- (KEYS|ARGV)\[(\d+)\] +(\w+) +\((.+?)\) +(\S.*)$")
_INCLUDE = re.compile(r"^ *-- include: (\w+)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Script:
    """One Lua operation: its source and the names of its keys and arguments, in order."""

    name: str
    source: bytes
    sha: str
    keys: tuple[str, ...]
    args: tuple[str, ...]
    key_tail: str | None = None
    """Name of the last key when it takes a list."""
    tail: str | None = None
    """The same of the last argument."""

    def named(self, keys: object, **others: str | list[str]) -> dict[str, str | list[str]]:
        """Return the keys of the script by name: `others`, the rest attributes or methods of `keys`, as of a `CrawlKeys`. Of
        `others` names that the header does not have are left out.
        """
        found = {name: others[name] if name in others else getattr(keys, name) for name in self.keys}
        return {name: key() if callable(key) else key for name, key in found.items()}

    def operands(self, keys: object, args: Mapping[str, Any]) -> list[Any]:
        """Return everything after `EVALSHA <sha>`: the number of keys, the keys, the arguments, in the header's order.

        `keys`: each by its name, or an object that has them all by these names. Raises KeyError or AttributeError for a missing
        name and TypeError for one that the header does not have.
        """
        if not isinstance(keys, Mapping):
            keys = self.named(keys)
        if len(keys) != len(self.keys) or len(args) != len(self.args):
            unknown = (set(keys) ^ set(self.keys)) | (set(args) ^ set(self.args))
            raise TypeError(f"lua/{self.name}.lua: keys or arguments differ from its header: {sorted(unknown)}")
        operands: list[Any] = [keys[name] for name in self.keys if name != self.key_tail]
        operands += keys[self.key_tail] if self.key_tail else ()
        operands.insert(0, len(operands))
        operands += (args[name] for name in self.args if name != self.tail)
        operands += args[self.tail] if self.tail else ()
        return operands

    def __call__(self, client: redis.Redis, keys: object, args: Mapping[str, Any]) -> Any:
        """Run the script on `client`; load it first where the server does not know it yet."""
        operands = self.operands(keys, args)
        # NEVER_DECODE: replies carry binary payloads, also for users who set decode_responses=True.
        try:
            return client.execute_command("EVALSHA", self.sha, *operands, NEVER_DECODE=True)  # type: ignore[no-untyped-call]  # redis-py has no types for it
        except NoScriptError:
            return client.execute_command("EVAL", self.source, *operands, NEVER_DECODE=True)  # type: ignore[no-untyped-call]

    def each(self, client: redis.Redis, calls: Sequence[Sequence[Any]]) -> list[Any]:
        """Return the replies to many calls, each given by its operands, in one round trip; a call that fails has its
        `redis.ResponseError` as its reply. Raises `redis.RedisError` when Redis does not answer.
        """
        commands = [("EVALSHA", self.sha, *operands) for operands in calls]
        replies = _replies(client, commands)
        if any(isinstance(reply, NoScriptError) for reply in replies):
            client.script_load(self.source)
            replies = _replies(client, commands)
        return replies

    async def run(self, client: redis.asyncio.Redis, keys: object, args: Mapping[str, Any]) -> Any:
        """Run the script on an event loop."""
        operands = self.operands(keys, args)
        try:
            return await client.execute_command("EVALSHA", self.sha, *operands, NEVER_DECODE=True)  # type: ignore[no-untyped-call]
        except NoScriptError:
            return await client.execute_command("EVAL", self.source, *operands, NEVER_DECODE=True)  # type: ignore[no-untyped-call]


def _replies(client: redis.Redis, commands: list[tuple[Any, ...]]) -> list[Any]:
    with client.pipeline(transaction=False) as pipe:
        for command in commands:
            pipe.execute_command(*command, NEVER_DECODE=True)  # type: ignore[no-untyped-call]  # redis-py has no types for it
        return pipe.execute(raise_on_error=False)


def script_files(folder: Path = LUA) -> dict[str, Path]:
    """Return the scripts below `folder` by name, without `lib`."""
    return {path.stem: path for path in sorted(folder.rglob("*.lua")) if path.parent.name != "lib"}


@cache
def script(name: str, folder: Path = LUA) -> Script:
    """Return the script `<name>.lua` below `folder`. Raises KeyError where there is none, ValueError when its header is not of
    the form above.
    """
    text = _INCLUDE.sub(
        lambda m: (LUA / "lib" / f"{m[1]}.lua").read_text("utf-8").rstrip(), script_files(folder)[name].read_text("utf-8")
    )
    names: dict[str, list[str]] = {"KEYS": [], "ARGV": []}
    returns = retry = False
    tails: dict[str, str | None] = {"KEYS": None, "ARGV": None}
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        if m := _FIELD.match(line):
            kind, number, field = m[1], int(m[2]), m[3]
            if tails[kind] is not None:
                raise ValueError(f"lua/{name}.lua: {tails[kind]} takes any number, so nothing may follow it")
            tails[kind] = field if "any number" in m[4] else None
            names[kind].append(field)
            if number != len(names[kind]):
                raise ValueError(f"lua/{name}.lua: {kind}[{number}] {field} stands at place {len(names[kind])}")
        elif line.startswith(("-- KEYS[", "-- ARGV[")):
            raise ValueError(f"lua/{name}.lua: cannot read the header line {line!r}")
        returns |= line.startswith("-- Returns: ")
        retry |= line.startswith(("-- Retry: safe", "-- Retry: unsafe"))
    if not (returns and retry):
        raise ValueError(f"lua/{name}.lua: the header lacks 'Returns:' or 'Retry: safe|unsafe'")
    source = text.encode()
    return Script(
        name=name,
        source=source,
        sha=sha1(source, usedforsecurity=False).hexdigest(),
        keys=tuple(names["KEYS"]),
        args=tuple(names["ARGV"]),
        key_tail=tails["KEYS"],
        tail=tails["ARGV"],
    )


_STATES = (
    exceptions.ConnectionError,  # away, another password, loading
    exceptions.TimeoutError,
    exceptions.ClusterError,  # down, or asked again and again
    exceptions.NoPermissionError,
    exceptions.ReadOnlyError,
    exceptions.OutOfMemoryError,
)


def is_servers_state(exc: redis.RedisError) -> bool:
    """Return True if the server cannot serve at present (away, full, read-only, another password), so that the same command may
    succeed later; False where the command itself is wrong.
    """
    return isinstance(exc, _STATES) or _answer(exc).startswith(("MISCONF", "NOREPLICAS", "BUSY", "MASTERDOWN", "TRYAGAIN"))


FIRST_RETRY_S, SLOWEST_RETRY_S = 0.1, 0.5
T = TypeVar("T")


class Patience:
    """Pauses between tries of a command that may be repeated, while the server cannot serve: each is twice the one before."""

    def __init__(self, within_s: float = math.inf) -> None:
        self._until, self._pause_s = time.monotonic() + within_s, FIRST_RETRY_S

    def pause_after(self, error: redis.RedisError) -> float:
        """Return the seconds until the next try. Raises the error where the command itself is wrong, or its time is over."""
        if not is_servers_state(error) or time.monotonic() >= self._until:
            raise error
        pause_s, self._pause_s = self._pause_s, min(SLOWEST_RETRY_S, 2 * self._pause_s)
        return pause_s


def retried(act: Callable[[], T], within_s: float = math.inf) -> T:
    """Return the result of `act`, which may be repeated, once the server serves it. Raises as `Patience.pause_after`."""
    patience = Patience(within_s)
    while True:
        try:
            return act()
        except redis.RedisError as error:
            time.sleep(patience.pause_after(error))


def _answer(exc: Exception) -> str:
    """Return the server's own words, without the command of a pipeline that redis-py puts in front of them."""
    return str(exc).rpartition("of pipeline caused error: ")[2]
