"""Tests wait for events, and judge no wall-clock time: a busy machine must not make them fail.

In `tests/` no `assert` compares a value of a clock of `time`; `time.sleep` stands in the files of `MAY_SLEEP` alone. Wait with
`wait_until` and `stays` of `tests/support/processes.py`; count events, or ask Redis for its time. CPU time is judged by
`tests/support/cpu_time.py` alone, which measures the machine, too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
CLOCKS = {
    f"{clock}{unit}" for clock in ("monotonic", "perf_counter", "process_time", "thread_time", "time") for unit in ("", "_ns")
}
MAY_SLEEP = {
    "support/processes.py": "the helpers that wait",
    "support/chaos.py": "between random deaths",
    "support/deaths.py": "how long the victim has lived is the case",
    "support/ways_to_die.py": "how long something is away is the case",
    "support/link_spiders.py": "a spider that blocks",
    "support/mortal_spider.py": "a spider that hangs",
    "support/toy/spiders.py": "a spider that hangs",
    "support/watched_site.py": "a site whose pages take long",
    "integration/test_crawler_process.py": "a site whose page takes long, and a crawler that stands still",
}
OTHERS = ("real_forums", "acceptance/scrapy_redis_project", "containers/")  # of others, or written like them; what measures


def faults(source: str) -> Iterator[tuple[int, str]]:
    """Line and words of each assertion about a clock, and of each call of `time.sleep`."""
    if "time." not in source:
        return
    for function in [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]:
        told = {
            name.id
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and _asks_a_clock(node.value)
            for target in node.targets
            for name in ast.walk(target)
            if isinstance(name, ast.Name)
        }
        for node in ast.walk(function):
            judged = isinstance(node, ast.Assert) and any(_judges(one, told) for one in ast.walk(node.test))
            slept = isinstance(node, ast.Call) and ast.unparse(node.func) == "time.sleep"
            if judged or slept:
                yield node.lineno, ast.unparse(node)


def _asks_a_clock(value: ast.expr) -> bool:
    """Whether the value is a clock's, or a sum or difference with one: `time.monotonic() - begun`."""
    while isinstance(value, ast.BinOp):
        if _asks_a_clock(value.right):
            return True
        value = value.left
    if isinstance(value, ast.Tuple):
        return any(_asks_a_clock(one) for one in value.elts)
    return isinstance(value, ast.Call) and ast.unparse(value.func) in {f"time.{name}" for name in CLOCKS}


def _judges(node: ast.AST, told: set[str]) -> bool:
    """Whether a comparison by size has a clock, or what one told, on one of its sides."""
    if not isinstance(node, ast.Compare) or not any(isinstance(one, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for one in node.ops):
        return False
    sides = [one for side in (node.left, *node.comparators) for one in ast.walk(side)]
    return any(isinstance(one, ast.expr) and _asks_a_clock(one) for one in sides) or any(
        isinstance(one, ast.Name) and one.id in told for one in sides
    )


def test_no_test_judges_a_clock_or_sleeps() -> None:
    found = []
    for path in sorted(TESTS.rglob("*.py")):
        name = path.relative_to(TESTS).as_posix()
        if not name.startswith(OTHERS):
            for line, words in sorted(set(faults(path.read_text("utf-8")))):
                if not (words.startswith("time.sleep") and name in MAY_SLEEP):
                    found.append(f"tests/{name}:{line}: {words}")
    assert not found, "\n".join(["judges a clock, or sleeps:", *found])


@pytest.mark.parametrize(
    "lines",
    [
        "assert time.monotonic() - begun < 3",
        "took = time.perf_counter() - begun; assert 0.5 <= took < 4",
        "begun, n = time.time(), 1; assert abs(begun - then) < 60",
        "assert time.process_time() - begun < 2",
        "time.sleep(0.1)",
    ],
)
def test_a_clock_that_is_judged_is_found(lines: str) -> None:
    assert list(faults(f"def test():\n    {lines}\n"))


@pytest.mark.parametrize(
    "lines",
    [
        "now = time.time(); assert record.at == now",
        "assert len(seen) < 3",
        "script = 'time.sleep(60)'",
    ],
)
def test_what_judges_no_clock_is_left_alone(lines: str) -> None:
    assert not list(faults(f"def test():\n    {lines}\n"))
