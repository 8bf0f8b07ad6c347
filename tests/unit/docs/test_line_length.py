"""No line of text in the documents has more than 120 characters (tables, code blocks and generated pages are left out), and no
cell of a table more than 20 words: the rest is prose below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
MOST = 120
MOST_WORDS = 20
GENERATED = {"redis-keys.md", "site-keys.md", "database.md", "outputs.md"}  # `make docs`
PAGES = [path for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")) if path.name not in GENERATED]


def text_lines(text: str) -> Iterator[tuple[int, str]]:
    """Line number and line of all that is neither table nor code. Indented lines behind an empty line are code."""
    fenced = code = False
    before = ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        indented = line.startswith("    ")
        code = indented and (code or not before.strip())
        before = line
        if not (fenced or code or line.startswith("|")):
            yield number, line


def test_no_line_of_text_is_too_long() -> None:
    assert len(PAGES) > 40
    long = [
        f"{page.relative_to(ROOT)}:{number}: {len(line)} characters"
        for page in PAGES
        for number, line in text_lines(page.read_text("utf-8"))
        if len(line) > MOST
    ]
    assert not long, "\n".join(long)


def test_tables_and_code_are_left_out() -> None:
    page = "text\n\n    code\n\n    more code\n\n- item\n    continued\n\n| cell |\n\n```\nfenced\n```\nend"
    assert [line for _, line in text_lines(page) if line and "```" not in line] == ["text", "- item", "    continued", "end"]


def long_cells(text: str) -> Iterator[tuple[int, str]]:
    """Line number and text of each cell of a table with too many words; code counts as one, the address of a link as none."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        fenced ^= line.startswith("```")
        if fenced or not line.startswith("|"):
            continue
        for cell in re.split(r"(?<!\\)\|", line):
            if len(re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "code", cell)).split()) > MOST_WORDS:
                yield number, cell.strip()


def test_no_cell_of_a_table_has_too_many_words() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "packaging").glob("*.md")]
    long = [
        f"{page.relative_to(ROOT)}:{line}: {cell}"
        for page in pages
        if page.name != "cli.md"
        for line, cell in long_cells(page.read_text("utf-8"))
    ]
    assert not long, "\n".join(["write what exceeds 20 words as prose below the table:", *long])


def test_a_long_cell_is_found() -> None:
    words = " ".join(["word"] * 19)
    page = f"| a | {words} `some code` |\n| {words} [link](x.md#y) | b |\n| {words} two more |\n```\n| {words} two more |\n```\n"
    assert [line for line, _ in long_cells(page)] == [3]
