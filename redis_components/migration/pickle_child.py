"""Reads pickles in a process with few rights: `python -I -S pickle_child.py SECONDS PATH…`, started by `members.py`.

Of Trawl it loads the codec alone, from the paths, and nothing of the project. Guards against a hostile pickle, each on its own:

1. Only values of plain types are made: a pickle that names any other class or function is refused before it gets it.
2. Limits: 512 MiB of memory, 60 s of CPU, no file, no child process; a timer ends it when one pickle takes over SECONDS.
3. An audit hook that refuses what Python itself would do outside: files, sockets, processes, imports.

A fault in Python's own unpickler is not contained by these.

Frames on both pipes: four bytes of length, then content. In: a pickle. Out, in the order of the pickles: a letter and
`{"v": value}` in the codec's form (`v`) or a reason in text (`r`); before the first one that is empty (`g`). After MOST_REPLIES
it ends well, and leaves the others unread.
"""

from __future__ import annotations

import datetime
import decimal
import io
import os
import pickle
import resource
import signal
import struct
import sys
import uuid
from typing import Any, NoReturn

if __name__ == "__main__":
    sys.path += sys.argv[2:]
from redis_components.codec import values
from redis_components.errors import CodecError

MEMORY = 512 * 1024 * 1024
CPU_S = 60
MOST_REPLY = 4 * 1024 * 1024
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


def answer(payload: bytes) -> tuple[bytes, bytes]:
    """Return the letter and the content of the answer to one pickle."""
    try:
        content = values.dumps({"v": values.exact(PlainUnpickler(io.BytesIO(payload)).load(), "it")})
        if len(content) > MOST_REPLY:
            raise Refused(f"it holds more than {MOST_REPLY:,} bytes")
    except (Refused, CodecError) as refusal:
        return b"r", str(refusal).encode("utf-8", "backslashreplace")
    except MemoryError:
        return b"r", b"it needs more memory than a request may"
    except Exception as exc:  # a broken or hostile pickle can make the unpickler raise anything
        return b"r", f"it is broken: {type(exc).__name__}: {exc}".encode("utf-8", "backslashreplace")[:500]
    return b"v", content


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
    b"\xe9".decode("latin-1").encode("utf-8", "backslashreplace").decode()  # loaded at their first use
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
