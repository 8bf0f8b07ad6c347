"""Patterns of key names, as SCAN and ACL rules take them."""

from __future__ import annotations


def literal(text: str) -> str:
    """A pattern that stands for the text itself."""
    return "".join(f"\\{sign}" if sign in "*?[]^-\\" else sign for sign in text)
