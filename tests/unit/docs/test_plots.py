"""The plots of docs/reference/results.md are those of the tables, and each is shown."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PLOTS = runpy.run_path(str(ROOT / "packaging/plots.py"))


@pytest.mark.parametrize("name", PLOTS["PLOTS_OF"])
def test_a_plot_is_what_its_table_says_and_is_shown(name: str) -> None:
    drawn = (ROOT / f"docs/images/plots/{name}.svg").read_text("utf-8")
    assert drawn == PLOTS["drawn"](PLOTS["PLOTS_OF"][name]), "run `make docs`"
    assert f"](../images/plots/{name}.svg)" in (ROOT / "docs/reference/results.md").read_text("utf-8")


def test_a_table_that_is_gone_is_said() -> None:
    with pytest.raises(ValueError, match="has no table with 'nothing'"):
        PLOTS["rows"](ROOT / "benchmarks/results/memory.md", "nothing")
