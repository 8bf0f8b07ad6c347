"""How many examples Hypothesis draws: `make test` the first ones, `make test-all` all of them."""

from __future__ import annotations

import os

SHARE = 0.4


def examples(most: int) -> int:
    """Return `most`, or a share of it in the short form. They are the same each time, so the short form has the first of them."""
    return round(most * SHARE) if os.environ.get("SHORT_TESTS") else most
