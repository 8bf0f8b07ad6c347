"""The references of docs/reference/ are those of the code."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
REFERENCES = {
    name: made
    for file in ("references", "cli_references")
    for name, made in runpy.run_path(str(ROOT / f"packaging/{file}.py"))["REFERENCES"].items()
}


@pytest.mark.parametrize("name", REFERENCES)
def test_a_reference_is_up_to_date(name: str) -> None:
    assert (ROOT / f"docs/reference/{name}.md").read_text("utf-8") == REFERENCES[name](), "run `make docs`"
