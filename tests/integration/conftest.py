"""Fixtures for tests of the embedded server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.embedded_user import MARK, Terminal
from tests.support.processes import none_left


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """A fresh data folder with users to start in it. Afterwards no server, keeper or user of it may be left."""
    data = tmp_path / "data"
    with none_left((MARK, str(data)), folder=data):
        terminal = Terminal(data)
        yield terminal
        terminal.close()
