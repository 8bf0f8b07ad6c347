"""Last span of a page's trace: its items are stored in the database (`workers/process/traces.py`)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from workers.process import traces


class _Traced(msgspec.Struct):
    traceparent: str = ""


_decoder = msgspec.json.Decoder(_Traced)


@contextmanager
def storing(payloads: Sequence[bytes]) -> Iterator[None]:
    """Record a span for each page whose items are stored within. Payloads are not parsed if tracing is off."""
    if not traces.is_on():
        yield
        return
    began, error = time.time_ns(), ""
    try:
        yield
    except Exception as failure:
        error = type(failure).__name__
        raise
    finally:
        for parent, items in Counter(map(_parent, payloads)).items():
            about = {"trawl.items": items, "trawl.batch": len(payloads)}
            if parent and (span := traces.begin("store", about, parent, kind="consumer", at_ns=began)):
                span.end(error)


def _parent(payload: bytes) -> str:
    try:
        return _decoder.decode(payload).traceparent
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""  # refused later, with its reason
