"""The serializer that pickles, for `SCHEDULER_SERIALIZER = "redis_components.picklecompat"`; nothing else here ever does.

A pickle can run any code when it is read. Choose this only where nobody but your crawlers can write to Redis.
"""

from __future__ import annotations

import pickle  # chosen by the user, by name
from typing import Any


def loads(payload: bytes) -> Any:
    """The object that was pickled."""
    return pickle.loads(payload)  # noqa: S301


def dumps(obj: Any) -> bytes:
    """A pickle of `obj`, in the newest protocol."""
    return pickle.dumps(obj, protocol=-1)
