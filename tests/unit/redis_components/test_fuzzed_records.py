"""Any bytes that stand in Redis or in a message: each reader has one outcome, the value or its own refusal, and nothing else.

`make fuzz MINUTES=5` looks for others than those that are always the same.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet_operations.backup.archive import records
from fleet_operations.backup.snapshot import BackupError
from redis_components.codec import values
from redis_components.errors import CodecError
from redis_components.frontier.holds import Hold
from redis_components.keys import crawl_record_of
from redis_components.start_tasks.seeding import BadStartTask, read
from tasks.guard.transport import fault_of_container
from tasks.guard.worker import fault_of_command, fault_of_task
from tests.support.examples import examples
from workers.state.beats import round_of
from workers.state.nodes import node_of
from workers.state.registry import crawler_of, size_of
from workers.state.reports import Act, Note
from workers.state.rolls import Roll
from workers.state.services import Autoscaling

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", examples(40)))
MINUTES = float(os.environ.get("FUZZ_MINUTES", "0"))

LEAVES = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=20) | st.binary(max_size=20)
)
WORDS = (
    *("url", "method", "headers", "body", "meta", "priority", "at", "by", "word", "reason", "spider"),
    *("keys", "policy", "state", "pid", "node", "u", "m", "h", "task", "id", "timelimit", "args"),
)
NAMES = st.sampled_from(WORDS)
TREES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(NAMES | st.text(max_size=5), inner), max_leaves=15
)
DEEP = st.integers(100, 4000).map(lambda depth: b"[" * depth + b"]" * depth)
JSON = TREES.map(lambda tree: json.dumps(tree, default=repr).encode()) | DEEP
PACKED = TREES.map(msgspec.msgpack.encode)
RAW = st.binary(max_size=200) | JSON | PACKED | PACKED.map(lambda raw: values.dumps({"u": "http://h/"})[:2] + raw)

NO_REDIS: Any = None  # parsers send no command
READERS: dict[str, tuple[Callable[[bytes], Any], tuple[type[Exception], ...]]] = {
    "codec": (values.loads, (CodecError,)),
    "start task": (read, (BadStartTask,)),
    "part of a backup": (lambda raw: records(_Content(raw), len(raw)), (BackupError,)),  # type: ignore[arg-type]  # only read
    "act": (Act.from_json, (ValueError,)),
    "note": (Note.from_json, (ValueError,)),
    "hold": (Hold.from_json, (ValueError,)),
    "roll": (Roll.from_json, (ValueError,)),
    "crawl": (lambda raw: crawl_record_of("a", raw), (ValueError,)),
    "node": (lambda raw: node_of("a", raw), (ValueError,)),
    "crawler": (lambda raw: crawler_of("a/0", raw), (ValueError,)),
    "autoscaling": (lambda raw: Autoscaling(NO_REDIS).parse("a", raw), (ValueError,)),
    "round": (lambda raw: round_of("a", raw), (ValueError,)),
    "size": (lambda raw: size_of("a", raw), (ValueError,)),
}


class _Content:
    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def read(self) -> bytes:
        return self._raw


def again_and_again(test: Callable[[int, bool], None]) -> None:
    """Once; with FUZZ_MINUTES until the time is over, with other examples each time."""
    test(EXAMPLES, True)
    end = time.monotonic() + MINUTES * 60
    while time.monotonic() < end:
        test(2000, False)


@pytest.mark.timeout(300 + MINUTES * 90)
@pytest.mark.parametrize("name", READERS)
def test_any_bytes_are_read_or_refused(name: str) -> None:
    reader, refusals = READERS[name]

    def run(examples: int, same: bool) -> None:
        @settings(max_examples=examples, derandomize=same, deadline=None, database=None)
        @given(RAW)
        def check(raw: bytes) -> None:
            with suppress(*refusals):
                reader(raw)

        check()

    again_and_again(run)


@pytest.mark.timeout(300 + MINUTES * 90)
def test_any_message_of_the_broker_has_a_verdict() -> None:
    def run(examples: int, same: bool) -> None:
        @settings(max_examples=examples, derandomize=same, deadline=None, database=None)
        @given(TREES, TREES)
        def check(one: object, other: object) -> None:
            for verdict in (fault_of_container(one), fault_of_task(one, other), fault_of_command(one, other)):
                assert verdict is None or verdict

        check()

    again_and_again(run)
