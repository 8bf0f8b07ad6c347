"""Reads pickles in a process with few rights: `python -I -S pickle_child.py SECONDS`, started by `members.py`.

Standard library only, run by its path, so that nothing of the project or its dependencies is loaded here. Guards against a
hostile pickle, each on its own:

1. Only values of plain types are made: a pickle that names any other class or function is refused before it gets it.
2. Limits: 512 MiB of memory, 60 s of CPU, no file, no child process; a timer ends it when one pickle takes over SECONDS.
3. An audit hook that refuses what Python itself would do outside: files, sockets, processes, imports.

A fault in Python's own unpickler is not contained by these.

Frames on both pipes: four bytes of length, then content. In: a pickle. Out, in the order of the pickles: a letter and JSON (`v`,
see `Writer`) or a reason in text (`r`); before the first one that is empty (`g`). After MOST_REPLIES it ends well, and leaves the
others unread.
"""

from __future__ import annotations

import datetime
import decimal
import io
import json
import os
import pickle
import resource
import signal
import struct
import sys
import uuid
from typing import Any, NoReturn

MEMORY = 512 * 1024 * 1024
CPU_S = 60
MOST_VALUES = 200_000
MOST_DEPTH = 100
MOST_REPLY = 16 * 1024 * 1024
MOST_REPLIES = 64 * 1024 * 1024

_TYPES = (
    set,
    frozenset,
    bytearray,
    datetime.datetime,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    datetime.timezone,
    decimal.Decimal,
    uuid.UUID,
)
_BY_NAME: dict[tuple[str, str], Any] = {(kind.__module__, kind.__name__): kind for kind in _TYPES}
_BY_NAME |= {("__builtin__", name): kind for (module, name), kind in _BY_NAME.items() if module == "builtins"}


class Refused(Exception):
    """A value in a pickle that is refused; the text is the reason."""


def latin1_bytes(text: object, encoding: object) -> bytes:
    """Return bytes as protocols before 3 write them."""
    if not isinstance(text, str) or encoding != "latin1":
        raise Refused("it names _codecs.encode for something else than bytes")
    return text.encode("latin1")


class PlainUnpickler(pickle.Unpickler):
    """Makes plain values and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the class of that name, if it is one of the plain types."""
        if (module, name) == ("_codecs", "encode"):
            return latin1_bytes
        try:
            return _BY_NAME[module, name]
        except KeyError:
            raise Refused(f"it names {module}.{name}, and only plain values are read") from None

    def persistent_load(self, pid: Any) -> NoReturn:  # noqa: ARG002
        """Refuse an object that is not in the pickle."""
        raise Refused("it refers to something outside of it")


class Writer:
    """A value as JSON can hold it: text, numbers, true, false, null and lists as they are, all else as {type: content}."""

    def __init__(self) -> None:
        self.left = MOST_VALUES

    def plain(self, value: Any, depth: int = 0) -> Any:
        """Return `value` for JSON. Raises Refused for anything but plain values, or for too many of them."""
        kind = type(value)
        self.left -= 1
        if self.left < 0:
            raise Refused(f"it holds more than {MOST_VALUES:,} values")
        if depth > MOST_DEPTH:
            raise Refused(f"it is nested deeper than {MOST_DEPTH}")
        if value is None or kind in (bool, int, float, str):
            return value
        if kind is list:
            return [self.plain(one, depth + 1) for one in value]
        if kind is dict:
            return {"dict": [[self.plain(key, depth + 1), self.plain(one, depth + 1)] for key, one in value.items()]}
        if kind in (tuple, set, frozenset):
            return {kind.__name__: [self.plain(one, depth + 1) for one in value]}
        if kind in (bytes, bytearray):
            return {kind.__name__: value.decode("latin-1")}
        return {kind.__name__: _content(value, kind)}


def _content(value: Any, kind: type) -> Any:
    if kind in (datetime.datetime, datetime.time):
        if value.tzinfo is not None and type(value.tzinfo) is not datetime.timezone:
            raise Refused("it holds a time zone other than a fixed offset")
        return [value.isoformat(), value.fold]
    if kind is datetime.date:
        return value.isoformat()
    if kind is datetime.timedelta:
        return [value.days, value.seconds, value.microseconds]
    if kind is decimal.Decimal:
        return str(value)
    if kind is uuid.UUID:
        return value.hex
    raise Refused(f"it holds {kind.__module__}.{kind.__qualname__}, and only plain values are read")


def answer(payload: bytes) -> tuple[bytes, bytes]:
    """Return the letter and the content of the answer to one pickle."""
    try:
        text = json.dumps(Writer().plain(PlainUnpickler(io.BytesIO(payload)).load())).encode()
        if len(text) > MOST_REPLY:
            raise Refused(f"it holds more than {MOST_REPLY:,} bytes")
    except Refused as refusal:
        return b"r", str(refusal).encode("utf-8", "backslashreplace")
    except MemoryError:
        return b"r", b"it needs more memory than a request may"
    except Exception as exc:  # a broken or hostile pickle can make the unpickler raise anything
        return b"r", f"it is broken: {type(exc).__name__}: {exc}".encode("utf-8", "backslashreplace")[:500]
    return b"v", text


def limit_resources() -> None:
    """Set each limit that the system knows; one may already be lower."""
    wanted = {
        "RLIMIT_AS": MEMORY,
        "RLIMIT_CPU": CPU_S,
        "RLIMIT_FSIZE": 0,
        "RLIMIT_NPROC": 0,
        "RLIMIT_CORE": 0,
        "RLIMIT_NOFILE": 3,
    }
    for name, value in wanted.items():
        try:
            resource.setrlimit(getattr(resource, name), (value, value))
        except (AttributeError, ValueError, OSError):
            continue


def refuse_event(event: str, _: tuple[object, ...]) -> None:
    """Refuse an event of the interpreter; the audit hook."""
    if event != "pickle.find_class":
        raise Refused(f"it tried {event}")


def shut_in() -> None:
    """Set the limits, and the audit hook."""
    json.dumps({"a": b"\xe9".decode("latin-1").encode("utf-8", "backslashreplace").decode()})  # loaded at their first use
    limit_resources()
    sys.addaudithook(refuse_event)


def take(size: int) -> bytes:
    """Read exactly that number of bytes of standard input; fewer at its end."""
    parts = []
    while size > 0 and (part := os.read(0, min(size, 1 << 20))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def give(letter: bytes, content: bytes) -> int:
    """Write one frame to standard output; return the size of its content."""
    frame = memoryview(struct.pack(">I", len(content) + 1) + letter + content)
    while frame:
        frame = frame[os.write(1, frame) :]
    return len(content)


def main(limit_s: float) -> NoReturn:
    """Answer one pickle after the other, until there are no more. One that takes longer than `limit_s` ends the process."""
    shut_in()
    given = give(b"g", b"")
    while given < MOST_REPLIES and len(size := take(4)) == 4:
        payload = take(struct.unpack(">I", size)[0])
        signal.setitimer(signal.ITIMER_REAL, limit_s)
        found = answer(payload)
        signal.setitimer(signal.ITIMER_REAL, 0)
        given += give(*found)
    os._exit(0)  # an orderly end would ask for what is not granted any more


if __name__ == "__main__":
    main(float(sys.argv[1]))
