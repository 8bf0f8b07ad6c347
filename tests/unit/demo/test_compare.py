"""`python -m demo.compare` says how much is stored, and its exit code whether that is all; the run is `make containers`."""

from __future__ import annotations

import json
import sys

import pytest

from demo import compare
from demo.compare import Coverage


def _table(name: str, *missing: str) -> Coverage:
    return Coverage(table=name, expected=4, stored=4 - len(missing), missing=missing, duplicates=0, wrong=(), unknown=())


@pytest.mark.parametrize(
    ("missing", "unread", "code"),
    [((), 0, 0), (("7",), 0, 1), ((), 3, 1)],
    ids=["all", "one missing", "not all read again"],
)
def test_it_ends_with_0_only_where_all_is_stored_and_was_looked_at(
    missing: tuple[str, ...], unread: int, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = compare.Found(unchecked=unread, pages=9, seconds=1.4, tables=(_table("posts", *missing), _table("comments")))
    monkeypatch.setattr(compare, "look", lambda _, again: found)
    monkeypatch.setattr(sys, "argv", ["compare"])
    assert compare.main() == code
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(f"posts: 4 shown, {'75.00' if missing else 100} % stored as they are shown, 0 twice")
    assert [line for line in said if "not read again" in line] == ([said[2]] if unread else [])
    monkeypatch.setattr(sys, "argv", ["compare", "--json"])
    assert compare.main() == code
    told = json.loads(capsys.readouterr().out)
    assert (told["unchecked"], told["tables"]["posts"]["missing"]) == (unread, len(missing))
