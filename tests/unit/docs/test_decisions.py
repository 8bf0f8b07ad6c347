"""Decision records are numbered from 1 without holes, and each title has the number of its file."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
RECORDS = sorted((ROOT / "docs/decisions").glob("*.md"))


def test_the_numbers_have_no_holes_and_none_is_used_twice() -> None:
    numbers = [int(path.name.partition("-")[0]) for path in RECORDS]
    assert numbers == list(range(1, len(numbers) + 1)), "give a new record the next number, or renumber the last one"


def test_a_title_has_the_number_of_its_file() -> None:
    titles = {path.name: path.read_text("utf-8").partition("\n")[0] for path in RECORDS}
    assert [name for name, title in titles.items() if not title.startswith(f"# {int(name.partition('-')[0])}. ")] == []


def test_a_reference_names_the_number_that_it_leads_to() -> None:
    link = re.compile(r"\[decision (\d+)\]\(\S*?(\d{4})-")
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks/results").glob("*.md")]
    found = [(page, *each) for page in pages for each in link.findall(page.read_text("utf-8"))]
    assert len(found) > 20, "the pattern still finds them"
    assert [f"{page.relative_to(ROOT)}: decision {said}" for page, said, file in found if int(said) != int(file)] == []
