"""The data of scrapy-redis, taken out of the way of our own keys before anything of it is read; its pickles as plain values, read
in a child process (`pickle_child.py`), which is the only place that reads them.
"""

from __future__ import annotations

import json
import os
import select
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from datetime import time as daytime
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any
from uuid import UUID

import redis

from redis_components.errors import TrawlError
from redis_components.keys import CrawlKeys
from redis_components.server.scripts import script
from redis_components.utils import bytes_to_str


def set_aside(client: redis.Redis, source: str, aside: str, *, owners: str, members: Sequence[bytes] | None = None) -> int:
    """Move `members` of the key `source`, or all of it where None are named, under the name `aside`; return their number.

    A list of which an earlier run has set something aside is moved in parts, the oldest first; repeat it until 0. Raises
    TrawlError while a Trawl crawler works there (`owners` is the key of its heartbeat), or where `aside` is of another type.
    """
    outcome, moved = script("set_aside")(
        client,
        {"source": source, "aside": aside, "owners": owners},
        {"whole": int(members is None), "members": members or []},
    )
    if outcome == b"crawling":
        raise TrawlError(f"a Trawl crawler works with {source}: stop it, import, and start it again")
    if outcome == b"kinds":
        raise TrawlError(f"{source} has become of another type than {aside}: look at it again")
    return int(moved)


@dataclass(frozen=True, kw_only=True)
class BothKeys:
    """The keys of a crawl in scrapy-redis and in Trawl."""

    theirs: CrawlKeys
    ours: CrawlKeys

    @property
    def shared_queue(self) -> bool:
        """Both packages use the same key for the queue."""
        return self.theirs.requests == self.ours.requests

    @property
    def shared_dupefilter(self) -> bool:
        """Both packages use the same key for fingerprints."""
        return self.theirs.dupefilter == self.ours.dupefilter


WINDOW = 200
SCAN = 1000

Progress = Callable[[int, int], None]
"""Called with the number of entries done, and of all."""


def is_foreign(member: bytes) -> bool:
    """Return True if Trawl did not write this member of the sorted set; its members begin with an order number below 2^53."""
    return len(member) < 9 or member[0] != 0


def is_pickle(member: bytes) -> bool:
    """Return True if it looks like a pickle: all of them end in a point, and since protocol 2 (2003) begin with one byte."""
    return member[:1] == b"\x80" and member[-1:] == b"."


def kind_of(client: redis.Redis, key: str) -> str:
    """Return the type of a key, or `none`."""
    kind: str = bytes_to_str(client.type(key))
    return kind


def size_of(client: redis.Redis, key: str, kind: str) -> int:
    """Return the number of members of a key of that type; 0 for a missing one."""
    sizes: Any = {"zset": client.zcard, "list": client.llen, "set": client.scard}
    return int(sizes[kind](key)) if kind in sizes else 0


def bytes_of(client: redis.Redis, *keys: str) -> int:
    """Return Redis's memory for these keys, estimated from its samples; 0 where it is not available."""
    try:
        return sum(client.memory_usage(key) or 0 for key in keys)
    except redis.ResponseError:  # a user without the right to ask
        return 0


def oldest(client: redis.Redis, key: str, kind: str, count: int) -> list[bytes]:
    """Return the first `count` members of a sorted set; of a list the oldest ones: scrapy-redis writes at its head."""
    found: Any = []
    if kind == "zset":
        found = client.zrange(key, 0, count - 1)
    elif kind == "list":
        written: Any = client.lrange(key, -count, -1)
        found = written[::-1]
    return list(found)


def windows(client: redis.Redis, key: str, kind: str, size: int = WINDOW) -> Iterator[list[bytes]]:
    """Yield all members of a list or a sorted set, in batches; while others write, some may be left out or come twice."""
    read: Any = client.zrange if kind == "zset" else client.lrange
    place = 0
    while found := list(read(key, place, place + size - 1)):
        yield found
        place += len(found)


def scanned(client: redis.Redis, key: str, kind: str, count: int = SCAN) -> Iterator[list[bytes]]:
    """Yield all members of a set or a sorted set, in batches that are not empty; one may come twice."""
    scan: Any = client.sscan if kind == "set" else client.zscan
    cursor: Any = None
    while cursor != 0:
        cursor, found = scan(key, cursor or 0, count=count)
        if found:
            yield [one if kind == "set" else one[0] for one in found]


def strangers(client: redis.Redis, key: str) -> Iterator[list[bytes]]:
    """Yield the members of a sorted set that are not ours, in batches that are not empty."""
    for batch in scanned(client, key, "zset"):
        if foreign := [member for member in batch if is_foreign(member)]:
            yield foreign


CHILD = Path(__file__).with_name("pickle_child.py")
START_S = 10.0
MOST_ANSWER = 20 * 1024 * 1024
PIPE_BYTES = 16 * 1024  # less than any system's pipe holds, so that writing never waits for reading


@dataclass(frozen=True, kw_only=True)
class Unread:
    """A pickle that was not read, and why."""

    reason: str


_BACK: dict[str, Callable[[Any], Any]] = {
    "dict": dict,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "bytes": lambda text: text.encode("latin-1"),
    "bytearray": lambda text: bytearray(text.encode("latin-1")),
    "datetime": lambda v: datetime.fromisoformat(v[0]).replace(fold=v[1]),
    "time": lambda v: daytime.fromisoformat(v[0]).replace(fold=v[1]),
    "date": date.fromisoformat,
    "timedelta": lambda v: timedelta(*v),
    "Decimal": Decimal,
    "UUID": lambda text: UUID(hex=text),
}


def _tagged(pairs: dict[str, Any]) -> Any:
    ((kind, content),) = pairs.items()
    return _BACK[kind](content)


class PickleReader:
    """Reads batches of pickles, each batch in a separate process."""

    def __init__(self, *, time_limit_s: float = 10.0) -> None:
        self.time_limit_s = time_limit_s

    def read(self, pickles: Sequence[bytes]) -> Iterator[Any]:
        """Return the value of each pickle, or `Unread`, in their order.

        A pickle that ends the process (memory, time, or worse) is unread, and the ones behind it are read by another process.
        Raises TrawlError when no process can be started.
        """
        left = deque(pickles)
        while left:
            with _Child() as child:
                while left and not child.is_over():
                    sent = child.send(left)
                    for _ in range(sent):
                        left.popleft()
                        yield child.answer(self.time_limit_s)
                        if child.is_over():
                            break


class _Child:
    """One process that reads pickles, and its answers."""

    def __init__(self) -> None:
        self._over = False
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(CHILD)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            bufsize=0,
        )
        try:
            self._frame(time.monotonic() + START_S)
        except (EOFError, TimeoutError, ValueError) as exc:
            self._end()
            raise TrawlError(
                f"the process that reads pickles does not start (exit code {self._process.returncode}, {exc}); nothing was read"
            ) from exc

    def is_over(self) -> bool:
        """There will be no more answers."""
        return self._over

    def send(self, pickles: Iterable[bytes]) -> int:
        """Send the first one, and as many more as its pipe takes without being read; how many."""
        message, count = bytearray(), 0
        for payload in pickles:
            if count and len(message) + len(payload) > PIPE_BYTES:
                break
            message += struct.pack(">I", len(payload)) + payload
            count += 1
        assert self._process.stdin is not None
        rest = memoryview(message)
        try:
            while rest:
                rest = rest[self._process.stdin.write(rest) :]
        except OSError:  # it has ended, and has no answer to the first one
            return count
        return count

    def answer(self, limit_s: float) -> Any:
        """Return the value of the next pickle that was sent, or `Unread`."""
        try:
            frame = self._frame(time.monotonic() + limit_s)
        except TimeoutError:
            self._over = True
            return Unread(reason=f"it took more than {limit_s:g} s")
        except (EOFError, ValueError) as exc:
            self._over = True
            return Unread(reason=f"it ended the process that read it ({exc})")
        if frame[:1] == b"r":
            return Unread(reason=frame[1:].decode("utf-8", "replace"))
        try:
            return json.loads(frame[1:], object_hook=_tagged)
        except Exception as exc:  # a set of lists, a day that is none: what the child sends is a stranger's, too
            return Unread(reason=f"it does not make plain values: {type(exc).__name__}: {exc}")

    def _frame(self, deadline: float) -> bytes:
        size = struct.unpack(">I", self._bytes(4, deadline))[0]
        if not 0 < size <= MOST_ANSWER:
            raise ValueError(f"an answer of {size:,} bytes")
        return self._bytes(size, deadline)

    def _bytes(self, size: int, deadline: float) -> bytes:
        assert self._process.stdout is not None
        parts = []
        while size > 0:
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError("no answer")
            part = os.read(self._process.stdout.fileno(), min(size, 1 << 20))
            if not part:
                raise EOFError(f"exit code {self._process.wait()}")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def __enter__(self) -> _Child:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        self._end()
