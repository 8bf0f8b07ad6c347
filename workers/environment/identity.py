"""What this process is: worker, beat, crawler … , for the lines of its log and for its spans."""

from __future__ import annotations

from typing import Any

_identity: dict[str, Any] = {}


def identify(**fields: Any) -> None:
    """What every line of this process says of it from now on; a field of "" or None is left out."""
    _identity.update({name: value for name, value in fields.items() if value not in ("", None)})


def identity() -> dict[str, Any]:
    """What it was said to be."""
    return dict(_identity)
