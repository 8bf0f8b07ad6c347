"""The targets: what reads the bytes, what it may refuse them with, and how the first inputs are made."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.attacks import test_fuzzed_inputs as texts
from tests.fuzz import pages, web
from tests.fuzz.target import Target
from tests.unit.redis_components import test_fuzzed_records as records


def _of_record(name: str) -> Target:
    reader, refusals = records.READERS[name]

    def read(raw: bytes) -> None:
        with suppress(*refusals):
            reader(raw)

    return Target(name=name.replace(" ", "-"), read=read, first=records.RAW)


def _of_text(name: str) -> Target:
    strategy, reader, refusals = texts.READERS[name]
    folder = Path(tempfile.mkdtemp(prefix="trawl-fuzz-"))

    def read(raw: bytes) -> None:
        text = raw.decode("utf-8", "replace")
        if name == "label" and not (text.isprintable() or "\n" in text):
            return
        with suppress(*refusals):
            reader(folder, text)

    first = strategy.map(lambda text: text.encode("utf-8", "replace"))
    return Target(name=name.lower().replace(" ", "-"), read=read, first=first)


def _verdicts(raw: bytes) -> None:
    """A message of the broker: the container, its headers and body, and the same as a command of remote control."""
    try:
        one, other = json.loads(raw)
    except (ValueError, TypeError, RecursionError):
        return
    for verdict in (records.fault_of_container(one), records.fault_of_task(one, other), records.fault_of_command(one, other)):
        assert verdict is None or verdict


def _message(one: Any, other: Any) -> bytes:
    return json.dumps([one, other], default=repr).encode()


ENVELOPE = Target(name="celery-envelope", read=_verdicts, first=st.builds(_message, records.TREES, records.TREES))

MADE: tuple[Callable[[], Target], ...] = (
    *((lambda name=name: _of_record(name)) for name in records.READERS),
    *((lambda name=name: _of_text(name)) for name in texts.READERS),
    lambda: ENVELOPE,
    *pages.TARGETS,
    *web.TARGETS,
)


def targets(only: str = "") -> list[Target]:
    """Those whose name has `only` in it."""
    return [target for make in MADE if only in (target := make()).name]


def target(name: str) -> Target:
    """The one of this name."""
    return next(one for one in targets(name) if one.name == name)
