"""Decision records have a number each, which stays when other records are removed; each title has the number of its file."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.sources import PACKAGES

ROOT = Path(__file__).parents[3]
RECORDS = sorted((ROOT / "docs/decisions").glob("*.md"))
MOST = 32


def test_records_are_few_and_no_number_is_used_twice() -> None:
    numbers = [int(path.name.partition("-")[0]) for path in RECORDS]
    assert len(numbers) == len(set(numbers)), "give a new record the next number"
    assert len(numbers) <= MOST, "a choice that is not questioned is a sentence where the code is"


def test_a_title_has_the_number_of_its_file() -> None:
    titles = {path.name: path.read_text("utf-8").partition("\n")[0] for path in RECORDS}
    assert [name for name, title in titles.items() if not title.startswith(f"# {int(name.partition('-')[0])}. ")] == []


def test_a_reference_names_the_number_that_it_leads_to() -> None:
    link = re.compile(r"\[decision (\d+)\]\(\S*?(\d{4})-")
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks/results").glob("*.md")]
    found = [(page, *each) for page in pages for each in link.findall(page.read_text("utf-8"))]
    assert len(found) > 10, "the pattern still finds them"
    assert [f"{page.relative_to(ROOT)}: decision {said}" for page, said, file in found if int(said) != int(file)] == []


def test_a_record_that_is_named_without_a_link_exists() -> None:
    """In comments, docstrings and pages: "decision 24", "docs/decisions/0024-incremental-scans.md"."""
    numbers = {int(path.name.partition("-")[0]) for path in RECORDS}
    roots = ("benchmarks", "docs", *PACKAGES)
    files = [path for name in roots for path in (ROOT / name).rglob("*") if path.suffix in {".py", ".lua", ".md", ".toml"}]
    named = re.compile(r"\b[Dd]ecision\s(\d+)\b|decisions/(\d{4})")
    found = [(path, int(one or other)) for path in files for one, other in named.findall(path.read_text("utf-8"))]
    assert len(found) > 20, "the pattern still finds them"
    assert [f"{path.relative_to(ROOT)}: decision {number}" for path, number in found if number not in numbers] == []
