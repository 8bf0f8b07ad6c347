"""How a crawler ended."""

from __future__ import annotations

import pytest

from workers.process import exit_kinds
from workers.process.exit_kinds import Exit, ExitKind


def test_the_table_in_the_docstring_is_the_table_in_the_code() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (exit_kinds.__doc__ or "").splitlines()
        if line[:1] == "|"
    ]
    documented = {row[0]: (row[1].removesuffix(", others"), row[2]) for row in rows[2:]}
    assert documented == {k.label: ("-signal" if k.code is None else str(k.code), k.then.value) for k in ExitKind}


@pytest.mark.parametrize("kind", [kind for kind in ExitKind if kind.code is not None])
def test_an_exit_code_is_a_kind_where_the_process_announced_it(kind: ExitKind) -> None:
    assert Exit.of(kind.exit_code, lived_s=1, announced=kind).kind is kind
    assert str(Exit.of(kind.exit_code, lived_s=1)) == f"crashed (exit code {kind.code})", "the spider's own"
    assert Exit.of(kind.exit_code + 1, lived_s=1, announced=kind).kind is ExitKind.CRASHED, "it ended in another way then"


@pytest.mark.parametrize(
    ("code", "text"),
    [(9, "crashed (exit code 9)"), (-9, "killed (SIGKILL)"), (-11, "killed (SIGSEGV)"), (-65, "killed (signal 65)")],
)
def test_an_end_without_announcement_is_told_by_its_code(code: int, text: str) -> None:
    assert str(Exit.of(code, lived_s=1)) == text


@pytest.mark.parametrize("asked", [ExitKind.DRAINED, ExitKind.RECYCLED])
def test_what_its_supervisor_asked_for_counts_where_it_obeyed(asked: ExitKind) -> None:
    assert Exit.of(0, lived_s=1, announced=ExitKind.STOPPED, why=asked).kind is asked
    assert Exit.of(0, lived_s=1, announced=ExitKind.FINISHED, why=asked).kind is ExitKind.FINISHED, "it had come to its end"
    assert Exit.of(3, lived_s=1, announced=ExitKind.ABORTED, why=asked).kind is ExitKind.ABORTED
    assert Exit.of(-9, lived_s=1, announced=ExitKind.STOPPED, why=asked).kind is ExitKind.KILLED


@pytest.mark.parametrize("asked", [ExitKind.DRAINED, ExitKind.RECYCLED])
def test_a_crawler_that_is_told_to_go_while_it_starts_has_obeyed(asked: ExitKind) -> None:
    assert str(Exit.of(-15, lived_s=0.3, why=asked)) == asked.label
    assert str(Exit.of(-15, lived_s=0.3)) == "killed (SIGTERM)", "nobody had told it"


@pytest.mark.parametrize("seen", [ExitKind.HUNG, ExitKind.OUT_OF_MEMORY])
def test_why_its_supervisor_killed_it_is_its_kind(seen: ExitKind) -> None:
    assert str(Exit.of(-9, lived_s=1, why=seen)) == f"{seen.label} (SIGKILL)"


def test_only_ends_that_gave_their_leases_back_are_clean() -> None:
    assert {kind for kind in ExitKind if kind.clean} == {
        ExitKind.FINISHED,
        ExitKind.DRAINED,
        ExitKind.STOPPED,
        ExitKind.RECYCLED,
    }
