"""Collected only where this folder is named, as `make test-real-forums` does: its tests install other people's software."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    named = any(HERE.name in argument for argument in config.invocation_params.args)
    return None if named or HERE not in collection_path.parents else True
