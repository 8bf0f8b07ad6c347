"""The process's environment, for tests of what enters variables into it."""

from __future__ import annotations

import os
from collections.abc import Iterator


def environment_as_before() -> Iterator[None]:
    """As a fixture: what the test entered is gone after it."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)
