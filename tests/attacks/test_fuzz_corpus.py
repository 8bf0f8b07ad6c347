"""Inputs that fuzzing has kept (`tests/fuzz/`), and others by structure: each has one outcome, and costs what its size allows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import pages, web
from tests.fuzz.ledger import Ledger
from tests.fuzz.target import CORPUS, Target
from tests.fuzz.targets import GROUPS, PARTS, targets

EXAMPLES = 10
TARGETS = {target.name: target for target in targets()}
NEW = [name for name in TARGETS if (CORPUS / name).is_dir()]


@pytest.mark.parametrize("name", NEW)
def test_each_input_that_was_kept_is_read_or_refused(name: str) -> None:
    for file, raw in TARGETS[name].kept():
        try:
            TARGETS[name].check(raw)
        except Exception as error:
            raise AssertionError(f"tests/fuzz/corpus/{name}/{file}") from error


@pytest.mark.parametrize("name", ["heads", *pages.TARGETS, *web.TARGETS])  # others have tests of their readers
def test_inputs_by_structure_are_read_or_refused(name: str) -> None:
    for raw in TARGETS[name].made(EXAMPLES):
        TARGETS[name].check(raw)


def test_each_reader_of_a_record_or_a_text_is_part_of_a_target() -> None:
    assert sorted(name for group in GROUPS.values() for name in group) == sorted(PARTS)


def test_a_folder_of_inputs_belongs_to_a_target() -> None:
    assert {folder.name for folder in CORPUS.iterdir()} <= set(TARGETS)


def test_an_input_that_raises_or_costs_too_much_is_a_fault() -> None:
    def slow(_raw: bytes) -> None:
        sum(range(10_000_000))

    target = next(iter(TARGETS.values()))
    with pytest.raises(ZeroDivisionError):
        Target(name="x", read=lambda _: 1 // 0, first=target.first).check(b"")  # type: ignore[arg-type,return-value]
    with pytest.raises(AssertionError, match="0 bytes cost"):
        Target(name="x", read=slow, first=target.first).check(b"", slower=0.01)


def test_what_was_run_is_added_up(tmp_path: Path) -> None:
    file = tmp_path / "fuzzing.md"
    file.write_text("# Fuzzing\n\n| target | minutes | inputs | places reached | runs that found something |\n\n## After\n")
    for minutes, found in ((1.5, False), (2.0, True)):
        Ledger.read(file).add("date", minutes, 1_000_000, 450, found=found).add("url", 1, 5, 3, found=False).write(file)
    text = file.read_text()
    assert "| date | 3.5 | 2,000,000 | 450 | 1 |\n| url | 2.0 | 10 | 3 | 0 |\n\n## After\n" in text
    assert text.startswith("# Fuzzing\n\n| target |")
