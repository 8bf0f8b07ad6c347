"""Reading files in TOML that people write: site files, services, rules of events."""

from __future__ import annotations

import tomllib
from typing import Any

MOST_DEPTH = 20
"""Tables and lists within each other. No file of Trawl has more than six; so functions over them may recurse."""
_INTEGERS = range(-(2**63), 2**63)  # TOML's own; Python reads longer ones, and refuses to show them


def toml_table(text: str) -> dict[str, Any]:
    """Return the table of a TOML text. Raises ValueError with the fault and, where it is known, its line."""
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise ValueError(f"nested more than {MOST_DEPTH} deep") from None
    level: list[Any] = [table]
    for _ in range(MOST_DEPTH):
        level = [inner for outer in level for inner in (outer.values() if isinstance(outer, dict) else outer)]
        if any(isinstance(value, int) and value not in _INTEGERS for value in level):
            raise ValueError("a whole number of more than 64 bits")
        level = [value for value in level if isinstance(value, dict | list)]
        if not level:
            return table
    raise ValueError(f"nested more than {MOST_DEPTH} deep")
