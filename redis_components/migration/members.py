"""The data of scrapy-redis, taken out of the way of our own keys before anything of it is read; its pickles as plain values, read
in a child process (`pickle_child.py`), which is the only place that reads them.
"""

from __future__ import annotations

import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import redis

import redis_components
from redis_components.codec import values
from redis_components.errors import CodecError, TrawlError
from redis_components.keys import CrawlKeys
from redis_components.server.scripts import script
from redis_components.utils import bytes_to_str


def set_aside(client: redis.Redis, source: str, aside: str, *, owners: str, members: Sequence[bytes] = ()) -> int:
    """Move `members` of the key `source` under the name `aside`; return their number. Without members move all of the key; of a
    list of which something waits there already its oldest: repeat it until 0.

    Raises TrawlError while a Trawl crawler works there (`owners` is the key of its heartbeat), or where `aside` is of another
    type.
    """
    outcome, moved = script("set_aside")(client, {"source": source, "aside": aside, "owners": owners}, {"members": members})
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
    def shared_dupefilter(self) -> bool:
        """Both packages use the same key for fingerprints."""
        return self.theirs.dupefilter == self.ours.dupefilter


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


def oldest(client: redis.Redis, key: str, kind: str, count: int) -> list[bytes]:
    """Return the first `count` members of a sorted set; of a list the oldest ones: scrapy-redis writes at its head."""
    found: Any = []
    if kind == "zset":
        found = client.zrange(key, 0, count - 1)
    elif kind == "list":
        written: Any = client.lrange(key, -count, -1)
        found = written[::-1]
    return list(found)


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
_PATHS = dict.fromkeys(str(Path(of).parents[1]) for of in (redis_components.__file__, msgspec.__file__))


@dataclass(frozen=True, kw_only=True)
class Unread:
    """A pickle that was not read, and why."""

    reason: str


class PickleReader:
    """Reads batches of pickles, each batch in a separate process."""

    def __init__(self, *, time_limit_s: float = 10.0) -> None:
        self.time_limit_s = time_limit_s

    def read(self, pickles: Sequence[bytes]) -> Iterator[Any]:
        """Return the value of each pickle, or `Unread`, in their order.

        A pickle that ends the process (memory, time, or worse) is unread, and the ones behind it are read by another process.
        Raises TrawlError when no process can be started.
        """
        left = list(pickles)
        while left:
            frames, why = self._answers(left)
            yield from map(_value, frames)
            left = left[len(frames) :]
            if why and left:
                yield Unread(reason=why)
                del left[0]

    def _answers(self, pickles: Sequence[bytes]) -> tuple[list[bytes], str]:
        """Return the answers to the first pickles, and why the process could not answer the next one; "" where it ended well."""
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(CHILD), str(self.time_limit_s), *_PATHS],
            input=b"".join(struct.pack(">I", len(one)) + one for one in pickles),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            check=False,
        )
        begin, *frames = _frames(done.stdout) or [b""]
        if begin != b"g":
            raise TrawlError(f"the process that reads pickles does not start (exit code {done.returncode}); nothing was read")
        if done.returncode == -signal.SIGALRM:
            return frames, f"it took more than {self.time_limit_s:g} s"
        why = f"it ended the process that read it (exit code {done.returncode})" if done.returncode else ""
        return frames[: len(pickles)], why


def _frames(output: bytes) -> list[bytes]:
    """Return the whole frames in the output of the process, which may have ended within one."""
    frames, at = list[bytes](), 0
    while (end := at + 4 + int.from_bytes(output[at : at + 4], "big")) <= len(output):
        frames.append(output[at + 4 : end])
        at = end
    return frames


def _value(frame: bytes) -> Any:
    if frame[:1] == b"r":
        return Unread(reason=frame[1:].decode("utf-8", "replace"))
    try:
        return values.loads(frame[1:])["v"]
    except (CodecError, KeyError) as exc:  # what the child sends is a stranger's, too
        return Unread(reason=f"it does not make plain values: {exc}")
