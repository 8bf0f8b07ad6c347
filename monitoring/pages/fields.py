"""The fields of a form, and their submitted values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from redis_components.errors import ConfigError

LONGEST = 500  # characters of a line
LONGEST_TEXT = 100_000


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field; `kind` is `line`, `number`, `text` (several lines) or `switch`."""

    name: str
    label: str
    kind: str = "line"
    needed: bool = False
    fixed: bool = False  # the object of the action: shown, not asked for, where the address names it
    hint: str = ""
    default: str = ""


class Given:
    """The submitted values, checked against the fields. Raises ConfigError, also where a required value is missing."""

    def __init__(self, fields: Sequence[Field], form: Mapping[str, Sequence[str]]) -> None:
        self._values: dict[str, str] = {}
        for one in fields:
            value = (form.get(one.name) or [""])[-1].strip()
            if one.needed and not value:
                raise ConfigError(f"{one.label}: is missing")
            longest = LONGEST_TEXT if one.kind == "text" else LONGEST
            if len(value) > longest or (one.kind != "text" and not value.isprintable()):
                raise ConfigError(f"{one.label}: must be one line of at most {longest} characters")
            self._values[one.name] = value

    def text(self, name: str) -> str:
        """Return the value of a field, without white space around it."""
        return self._values[name]

    def is_on(self, name: str) -> bool:
        """Return True if a switch was set."""
        return bool(self._values[name])

    def whole(self, name: str) -> int | None:
        """Return a whole number; None for an empty field. Raises ConfigError."""
        text = self._values[name]
        if text and not (text.isascii() and text.isdigit() and len(text) < 10):
            raise ConfigError(f"{name} {text!r:.40}: must be a whole number")
        return int(text) if text else None

    def number(self, name: str) -> float | None:
        """Return a number; None for an empty field. Raises ConfigError."""
        text = self._values[name]
        try:
            return float(text) if text else None
        except ValueError:
            raise ConfigError(f"{name} {text!r:.40}: must be a number") from None

    def lines(self, name: str) -> list[str]:
        """Return the lines of a field, without empty ones."""
        return [line.strip() for line in self._values[name].splitlines() if line.strip()]

    def pairs(self, name: str) -> dict[str, str]:
        """Parse `NAME=VALUE` on each line. Raises ConfigError."""
        found = {}
        for line in self.lines(name):
            key, equals, value = line.partition("=")
            if not (key and equals):
                raise ConfigError(f"{name} {line!r:.100}: must be of the form NAME=VALUE")
            found[key] = value
        return found

    def words(self, action: str) -> list[str]:
        """Return the act as the audit keeps it: `["limit", "example.org", "--rate=3"]`, as the command would be written."""
        named = [
            ("", value) if name in ("service", "site", "job") else (f"--{name}", value) for name, value in self._values.items()
        ]
        return [action, *(f"{key}={' '.join(value.split())}" if key else value for key, value in named if value)]
