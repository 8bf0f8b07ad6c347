"""Pickles of strangers: plain values come back as they were, nothing else is made, and the process that reads them can do
nothing.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections import OrderedDict
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from redis_components.migration.members import _PATHS, CHILD, PickleReader, Unread

pytestmark = pytest.mark.processes

PLAIN = {
    "none": None,
    "numbers": [True, 1, 2**80, 1.5, float("inf")],
    "text": "é",
    "bytes": b"\x00\xff",
    "array": bytearray(b"a"),
    "nested": ({1, 2}, frozenset({"a"}), {1: {(2, b"k"): []}}),
    "times": [datetime(2026, 1, 2, fold=1), datetime(2026, 1, 2, tzinfo=UTC), date(2026, 1, 2), time(3, 4), timedelta(1, 2, 3)],
    "others": [Decimal("1E+999"), UUID(int=7)],
}


class Runs:
    """A pickle that calls a function when it is read."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self._call = (function, arguments)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self._call


def read(*pickles: bytes, **options: Any) -> list[Any]:
    return list(PickleReader(**options).read(pickles))


def reason(payload: bytes, **options: Any) -> str:
    """Why one is not read; the one behind it is read all the same."""
    first, second = read(payload, pickle.dumps({"sound": 1}), **options)
    assert second == {"sound": 1}
    assert isinstance(first, Unread)
    return first.reason


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_values_come_back_with_their_types(protocol: int) -> None:
    payload = pickle.dumps(PLAIN, protocol)
    (value,) = read(payload)
    assert repr(value) == repr(pickle.loads(payload))  # some protocols do not keep a time's fold


@pytest.mark.parametrize(
    ("function", "arguments", "name"),
    [
        (os.system, ("touch {}",), "posix.system"),
        (eval, ("open('{}', 'w')",), "builtins.eval"),
        (subprocess.Popen, (["touch", "{}"],), "subprocess.Popen"),
        (getattr, ("", "join"), "builtins.getattr"),
    ],
)
def test_a_pickle_that_names_code_runs_nothing(function: Any, arguments: tuple[Any, ...], name: str, tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    said = [one.format(trace) if isinstance(one, str) else [part.format(trace) for part in one] for one in arguments]
    assert name in reason(pickle.dumps(Runs(function, *said)))
    assert not trace.exists()


@pytest.mark.parametrize(
    ("payload", "word"),
    [
        (b"", "broken"),
        (b"no pickle", "broken"),
        (pickle.dumps({"a": 1})[:-3], "broken"),
        (pickle.dumps(OrderedDict(a=1)), "collections.OrderedDict"),
        (pickle.dumps(datetime(2026, 1, 1, tzinfo=ZoneInfo("Europe/Berlin"))), "only plain values"),
        (pickle.dumps(1j), "complex"),
        (pickle.dumps(Runs(bytearray, 10**12)), "memory"),
        (pickle.dumps(Runs(set, 5)), "TypeError"),
        (b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f.", "broken"),
        (b"\x80\x02P1\n.", "refers to something outside"),
        (b"(lp0\ng0\na.", "RecursionError"),  # a list that holds itself
    ],
)
def test_what_is_broken_too_large_or_not_plain_is_refused_with_the_reason(payload: bytes, word: str) -> None:
    assert word in reason(payload)


def test_a_value_that_grows_while_it_is_written_down_is_refused() -> None:
    bomb: list[Any] = []
    for _ in range(30):
        bomb = [bomb] * 2
    assert "took more than 0.5 s" in reason(pickle.dumps(bomb), time_limit_s=0.5)


def test_one_that_takes_too_long_is_ended_and_those_behind_it_are_read() -> None:
    collisions = {n * (2**61 - 1) for n in range(200)}  # integers with one hash: the time for a set of them grows with the square
    assert hash(max(collisions)) == 0
    slow = pickle.dumps(Runs(set, [n * (2**61 - 1) for n in range(40_000)]))
    assert "took more than 0.5 s" in reason(slow, time_limit_s=0.5)


def test_python_itself_refuses_what_a_read_pickle_would_do_outside() -> None:
    acts = ("socket.socket()", "open('/etc/passwd')", "os.fork()", "os.system('true')")
    lines = "".join(
        f"try:\n {act}\n said.append('done')\nexcept BaseException as exc:\n said.append(type(exc).__name__)\n" for act in acts
    )
    begin = (
        f"import os, runpy, socket, sys\nsys.path += {list(_PATHS)!r}\nrunpy.run_path({str(CHILD)!r})['shut_in']()\nsaid = []\n"
    )
    end = "os.write(1, '|'.join(said).encode())\nos._exit(0)\n"
    done = subprocess.run(
        [sys.executable, "-I", "-c", begin + lines + end], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.split("|") == ["Refused"] * len(acts), done.stderr
