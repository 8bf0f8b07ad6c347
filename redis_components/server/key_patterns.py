"""Patterns of key names, as SCAN and ACL rules take them."""

from __future__ import annotations


def literal(text: str) -> str:
    """Return a pattern that matches exactly the text."""
    return "".join(f"\\{sign}" if sign in "*?[]^-\\" else sign for sign in text)
