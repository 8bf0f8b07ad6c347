"""The fields of a stored request and their types, as they lie in Redis, before they become a request."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from redis_components.errors import Undecodable

from . import values


class StoredRequest(msgspec.Struct, kw_only=True, gc=False):
    """The content of a payload: the URL and all that differs from a plain GET. The letters are part of the stored format
    (docs/decisions/0062-stored-forms.md).

    msgspec checks the types while it reads. `Any` fields may hold tagged values (`values.py`), which `check` checks.
    """

    u: str  # URL
    c: str | None = None  # callback
    e: str | None = None  # errback
    m: str = "GET"  # method
    h: list[list[bytes]] | None = None  # headers: name and values of each
    b: bytes = b""  # body
    k: Any = None  # cookies
    t: Any = None  # meta
    w: Any = None  # cb_kwargs
    p: Any = 0  # priority
    d: bool = False  # dont_filter
    f: list[Any] | None = None  # flags
    n: str = "utf-8"  # encoding
    cls: str | None = msgspec.field(name="_", default=None)  # path of the class, where it is not Request
    x: dict[str, Any] | None = None  # further attributes of that class


# letter -> constructor argument of Request, and its default
ARGUMENTS: dict[str, tuple[str, Any]] = {
    "m": ("method", "GET"),
    "b": ("body", b""),
    "k": ("cookies", None),
    "t": ("meta", None),
    "w": ("cb_kwargs", None),
    "p": ("priority", 0),
    "d": ("dont_filter", False),
    "f": ("flags", None),
    "n": ("encoding", "utf-8"),
}
MAPPING = (dict, type(None))

_decode = msgspec.msgpack.Decoder(StoredRequest, ext_hook=values.ext_hook).decode


def read(payload: bytes) -> StoredRequest:
    """Return the content of a payload. Raises Undecodable; meta, cookies and the like are left to `check`."""
    stored: StoredRequest = values.loads(payload, _decode)
    return stored


def check(stored: StoredRequest) -> None:
    """Raise Undecodable for values of a kind that the reader could not check: they may be tagged."""
    if type(stored.p) is not int:
        raise _unfit("priority", stored.p)
    for name, value in (("meta", stored.t), ("cb_kwargs", stored.w)):
        if type(value) not in MAPPING:
            raise _unfit(name, value)
    cookies = stored.k
    if type(cookies) not in MAPPING and (type(cookies) is not list or any(type(one) is not dict for one in cookies)):
        raise _unfit("cookies", cookies)
    if not is_encoding(stored.n):
        raise Undecodable(f"payload does not make a request: {stored.n!r:.60} is not an encoding of text")


def _unfit(name: str, value: object) -> Undecodable:
    return Undecodable(f"payload does not make a request: {name} of the type {type(value).__name__}")


@lru_cache(maxsize=64)
def is_encoding(name: str) -> bool:
    """Return True if text can be written in this encoding: Python also knows codecs such as `zlib`."""
    try:
        "".encode(name)
    except (LookupError, ValueError):
        return False
    return True
