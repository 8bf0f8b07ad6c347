"""What the demo says of its steps fits on one line of a narrow terminal: there it would be cut."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import demo

COLUMNS = 60
CLOCK = len("0:00  ")


def length(sentence: ast.expr) -> int:
    """As printed, with names of crawlers and with the largest figures of a demo."""
    if isinstance(sentence, ast.Constant):
        return len(str(sentence.value))
    assert isinstance(sentence, ast.JoinedStr)
    parts = [
        len("forum_detail/0" if ast.unparse(one).endswith(".name}'") else "1,000")
        for one in sentence.values
        if isinstance(one, ast.FormattedValue)
    ]
    return sum(parts) + sum(len(str(one.value)) for one in sentence.values if isinstance(one, ast.Constant))


def sentences() -> list[tuple[ast.expr, int]]:
    """Each sentence in the source of the demo, and what stands before it on its line."""
    return [
        (node.args[0], CLOCK)
        for file in Path(demo.__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "happened"
    ]


@pytest.mark.parametrize(("sentence", "before"), [pytest.param(*one, id=ast.unparse(one[0])) for one in sentences()])
def test_a_sentence_fits(sentence: ast.expr, before: int) -> None:
    assert before + length(sentence) <= COLUMNS


def test_there_are_sentences() -> None:
    assert len(sentences()) > 9
