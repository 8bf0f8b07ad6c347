"""The list of files that a start task passes, in docs/reference/start-task-way.md: it is whole, and no file of it is gone."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.start_task_way import BEGIN, END, LEGS, page

ROOT = Path(__file__).parents[3]
MOST = 147  # files; fewer after each merge, never more
OLD = 10  # files that were merged since the list was written
TEXT = (ROOT / "docs" / "reference" / "start-task-way.md").read_text("utf-8")
LISTED = TEXT.split(BEGIN)[1].split(END)[0]


def test_each_listed_file_exists_and_their_number_does_not_grow() -> None:
    files = re.findall(r"`([\w/.]+)`", LISTED)
    scripts = {path.name for path in ROOT.glob("*/**/lua/**/*.lua")}
    gone = [file for file in files if file not in scripts and not (ROOT / file).is_file()]
    assert len(gone) <= OLD, f"{gone}: python -m benchmarks.start_task_way writes the list again"
    assert LISTED.startswith(f"{len(files)} files ")
    assert len(set(files)) <= MOST


def test_the_list_is_written_between_its_marks_and_nothing_else_changes() -> None:
    files = {leg: [f"{leg}/{number}.py" for number in range(9)] for leg in LEGS}
    written = page(files, TEXT)
    assert written.replace(written.split(BEGIN)[1].split(END)[0], LISTED) == TEXT
    assert max(map(len, written.split(BEGIN)[1].split(END)[0].splitlines())) <= 120
    assert all(f"`{file}`" in written for leg in LEGS for file in files[leg])
