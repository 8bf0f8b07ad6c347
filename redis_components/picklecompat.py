"""The pickle serializer, for `SCHEDULER_SERIALIZER = "redis_components.picklecompat"`; no other module here pickles.

A pickle can run any code when it is read. Choose this only where your crawlers alone can write to Redis.
"""

from __future__ import annotations

import pickle  # chosen by the user, by name
from typing import Any


def loads(payload: bytes) -> Any:
    """Return the pickled object."""
    return pickle.loads(payload)  # noqa: S301


def dumps(obj: Any) -> bytes:
    """Return a pickle of `obj`, in the newest protocol."""
    return pickle.dumps(obj, protocol=-1)
