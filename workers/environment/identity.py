"""The identity of this process (worker, beat, crawler …), for the lines of its log and for its spans."""

from __future__ import annotations

from typing import Any

_identity: dict[str, Any] = {}


def identify(**fields: Any) -> None:
    """Add fields to every log line of this process from now on; a field of "" or None is left out."""
    _identity.update({name: value for name, value in fields.items() if value not in ("", None)})


def identity() -> dict[str, Any]:
    """Return the fields of this process's identity."""
    return dict(_identity)
