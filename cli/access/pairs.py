"""NAME=VALUE options of commands."""

from __future__ import annotations

from collections.abc import Iterable

from redis_components.errors import ConfigError


def pairs(option: str, words: Iterable[str] | None) -> dict[str, str]:
    """What `-a NAME=VALUE` and the like say. Raises ConfigError that names the option."""
    found = {}
    for word in words or ():
        name, equals, value = word.partition("=")
        if not (name and equals):
            raise ConfigError(f"{option} {word!r} is not of the form NAME=VALUE")
        found[name] = value
    return found
