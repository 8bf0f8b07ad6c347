"""Each promise of docs/security.md and docs/guarantees.md has a test: its sentence or row names one, or `promised.py` does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from .promised import EXPLAINED, TESTS

ROOT = Path(__file__).parents[3]
NAMED = re.compile(r"`(tests/[\w/]*)?test_[\w*…]+(\.py)?`")
LIMITS = re.compile(r"Where (it|they|these|the limit) [\w ]{0,11}ends?\b")
NO_PROMISES = {"Where they end", "Who is trusted with what"}
"""Headings of tables."""


class Promise(NamedTuple):
    """A sentence, or a row of a table without its first `| `; whether it, or what it refers to, names a test."""

    text: str
    has_test: bool


def promises(page: str) -> Iterator[Promise]:
    """What a page says, but for headings, examples and what it does not promise."""
    sections = re.split(r"^#+ (.*)$", page, flags=re.MULTILINE)
    tested = {slug(title) for title, text in zip(sections[1::2], sections[2::2], strict=True) if NAMED.search(text)}
    for title, section in zip(["", *sections[1::2]], sections[::2], strict=True):
        for block in re.split(r"\n\s*\n", section):
            if block.lstrip("\n").startswith("|"):
                if title not in NO_PROMISES:
                    yield from _rows(block.strip().splitlines(), tested)
            elif not LIMITS.match(block.strip()) and not block.startswith("    "):
                for item in re.split(r"\n(?=- )", block.strip()):
                    said = re.split(r"(?<=[.!?:]) +(?=\(?[A-Z`\[*])", " ".join(item.split()))
                    yield from (Promise(one, bool(NAMED.search(one))) for one in _joined(said) if one)


def _joined(said: list[str]) -> Iterator[str]:
    """Sentences, with what follows a colon."""
    begun = ""
    for part in said:
        begun = f"{begun} {part}".strip()
        if not begun.endswith(":"):
            yield begun
            begun = ""
    if begun:
        yield begun


def _rows(lines: list[str], tested: set[str]) -> Iterator[Promise]:
    has_test = False
    for line in lines[2:]:
        text = line.removeprefix("| ").removeprefix("|").strip()
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        follows = not cells[0] or cells[-1].endswith("the same")  # the row above names the test
        below = re.search(r"\[below\]\(#([\w-]+)\)", line)
        has_test = bool(NAMED.search(line)) or (below is not None and below[1] in tested) or (follows and has_test)
        yield Promise(text, has_test)


def slug(title: str) -> str:
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", TESTS)
def test_each_promise_has_a_test(page: str) -> None:
    said = list(promises((ROOT / "docs" / page).read_text("utf-8")))
    assert len(said) > 90
    known = (*TESTS[page], *EXPLAINED)
    without = [one.text for one in said if not one.has_test and not any(one.text.startswith(begin) for begin in known)]
    assert without == [], "name its test in docs, or in promised.py"
    of_none = [begin for begin in TESTS[page] if sum(one.text.startswith(begin) for one in said) != 1]
    assert of_none == [], "these begin no sentence, or more than one"


def test_what_is_no_promise_stands_there() -> None:
    said = [one.text for page in TESTS for one in promises((ROOT / "docs" / page).read_text("utf-8"))]
    assert [begin for begin in EXPLAINED if not any(one.startswith(begin) for one in said)] == []


def test_each_test_of_a_promise_is_there() -> None:
    for node in {node for page in TESTS.values() for nodes in page.values() for node in nodes}:
        file, _, name = node.partition("::")
        assert re.search(rf"^(async )?def {name}\(", (ROOT / file).read_text("utf-8"), re.MULTILINE), node


def test_a_promise_without_a_test_is_noticed() -> None:
    page = """# A page

It holds. That is `test_a_thing`'s: twice, as `test_a_thing` says.

Where it ends: nowhere.

| fault | promise | test |
|---|---|---|
| a | b | `test_a.py` |
| | c | |
| d | e | |
| f | see [below](#more) | |

## More

- One (`test_one`).
- Two.
"""
    assert [one.text.split(" |")[0] for one in promises(page) if not one.has_test] == ["It holds.", "d", "- Two."]
