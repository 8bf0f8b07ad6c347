"""A benchmark in its shortest form, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.__main__ import module_of

ROOT = Path(__file__).parents[2]


def run_benchmark(name: str, options: Sequence[str], folder: Path) -> dict[str, Any]:
    """What `python -m benchmarks.NAME` wrote as JSON; its page has to be what it printed, without a path of this machine."""
    out, page = folder / f"{name}.json", folder / f"{name}.md"
    done = subprocess.run(
        [sys.executable, "-m", module_of(name), *options, f"--out={out}", f"--page={page}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert page.read_text() == done.stdout[:-1]
    assert str(ROOT) not in done.stdout
    assert str(folder) not in done.stdout
    figures: dict[str, Any] = json.loads(out.read_text())
    return figures


def lines_of(figures: dict[str, Any], table: int = 0) -> dict[str, dict[str, Any]]:
    """The lines of a table by their first cell."""
    return {str(next(iter(row.values()))): row for row in figures["tables"][table]}
