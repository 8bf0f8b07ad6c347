"""What docs/operations.md prints under "Use the data" for Python runs as printed."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from forums.storage import Database, parse
from tests.support.items import post, wire

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("page", ["operations.md", "zh/operations.md"])
def test_the_snippet_with_pandas_reads_the_rows(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed: pip install pandas")
    monkeypatch.chdir(tmp_path)
    with Database.from_url("sqlite:///data/trawl.sqlite") as database:
        database.write([parse(wire(one)) for one in (post("p1"), post("p2"), post("p3", forum_id="f2"))])
    blocks = re.findall(r"(?:^    .*\n)+", (ROOT / "docs" / page).read_text("utf-8"), re.MULTILINE)
    (snippet,) = (textwrap.dedent(block) for block in blocks if "import pandas" in block)
    exec(compile(snippet, page, "exec"), {})
    shown = capsys.readouterr().out
    assert re.search(r"demo\s+f1\s+2 2026-01-01", shown), shown
    assert re.search(r"f2\s+1 2026-01-01", shown), shown
