"""What help and refusals say of options: words that people use, not types of Python or sentences of a validator."""

from __future__ import annotations

import re

import pytest

from cli.command_table import COMMANDS
from cli.main import main


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_no_type_of_python(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    assert re.findall(r"<[a-z |]+>|list\[|int range", capsys.readouterr().out) == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("export nope", "'nope' is not one of 'posts', 'comments'"),
        ("dead --limit x", "Invalid value for '--limit'"),
        ("dead --limit 0", "greater than or equal to 1"),
        ("up --port-flower 70000", "less than or equal to 65535"),
        ("limit news --rate fast", "should be a valid number"),
        ("scale", "Missing argument"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_right(line: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 2
    assert said in capsys.readouterr().err
