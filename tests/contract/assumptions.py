"""Marks a test with the assumptions that it asserts; one test compares them with those that are declared."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Test = TypeVar("Test", bound=Callable[..., object])

ASSERTED: dict[str, set[str]] = {}
"""Library -> names."""


def asserts(library: str, *names: str) -> Callable[[Test], Test]:
    """Of a test."""
    ASSERTED.setdefault(library, set()).update(names)
    return lambda test: test
