"""A text that is never printed."""

from __future__ import annotations

from redis_components.server.url import masked


class Secret:
    """`str` and `repr` show a URL without its password, and of any other text nothing. `get_secret_value()` returns the text."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def get_secret_value(self) -> str:
        """Return the text itself."""
        return self._text

    def __str__(self) -> str:
        return masked(self._text) if "://" in self._text else "***" if self._text else ""

    def __repr__(self) -> str:
        return f"Secret({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)
