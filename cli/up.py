from __future__ import annotations
def up() -> int:
    """Start everything."""
    return 0
