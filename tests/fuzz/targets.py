"""The targets: what reads the bytes, what it may refuse them with, and how the first inputs are made.

What reads inputs of one form is one target, and each of its readers reads every input: records are read in microseconds, and an
hour for each of them alone would find what the first minute did.
"""

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

GROUPS = {
    "records": (
        *("act", "note", "hold", "roll", "crawl", "node", "crawler", "autoscaling", "round", "size", "version", "job"),
        *("declared service", "API body", "metrics of a record", "shown arguments", "celery envelope"),
    ),
    "packed": ("codec", "start task", "part of a backup", "item of the stream"),
    "configuration": ("trawl.toml", "scrapy.cfg", "requirements.txt", "consumer", "filter"),
    "heads": ("robots.txt", "response headers"),
}
"""Target -> the readers that get each of its inputs."""
WORDS = (*records.WORDS, *texts.KEYS.split(), "[services.x]", "true", "null", "1e999", "[settings]")


def _of_record(name: str) -> Target:
    reader, refusals = records.READERS[name]

    def read(raw: bytes) -> None:
        with suppress(*refusals):
            reader(raw)

    return Target(name=name, read=read, first=records.RAW)


def _of_text(name: str) -> Target:
    strategy, reader, refusals = texts.READERS[name]
    folder = Path(tempfile.mkdtemp(prefix="trawl-fuzz-"))

    def read(raw: bytes) -> None:
        text = raw.decode("utf-8", "replace")
        with suppress(*refusals):
            reader(folder, text)

    return Target(name=name, read=read, first=strategy.map(lambda text: text.encode("utf-8", "replace")))


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


ENVELOPE = Target(name="celery envelope", read=_verdicts, first=st.builds(_message, records.TREES, records.TREES))
PARTS: dict[str, Callable[[], Target]] = {
    **{name: (lambda name=name: _of_record(name)) for name in records.READERS},
    **{name: (lambda name=name: _of_text(name)) for name in texts.READERS},
    **{target.name: (lambda target=target: target) for target in (ENVELOPE, pages.ROBOTS, pages.HEADERS, web.ITEM)},
}


def _group(name: str) -> Target:
    parts = [PARTS[part]() for part in GROUPS[name]]

    def read(raw: bytes) -> None:
        for part in parts:
            part.read(raw)

    words = tuple(dict.fromkeys(word for part in parts for word in part.words)) or WORDS
    return Target(name=name, read=read, first=st.one_of([part.first for part in parts]), words=words)


MADE: dict[str, Callable[[], Target]] = {
    **{name: (lambda name=name: _group(name)) for name in GROUPS},
    **pages.TARGETS,
    **web.TARGETS,
}


def targets(only: str = "") -> list[Target]:
    """Those whose name has `only` in it."""
    return [make() for name, make in MADE.items() if only in name]


def target(name: str) -> Target:
    """The one of this name."""
    return MADE[name]()
