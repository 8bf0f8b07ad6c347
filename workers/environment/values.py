"""A text that is never printed."""

from __future__ import annotations

import re

from redis_components import defaults
from redis_components.errors import ConfigError
from redis_components.server.names import MOST_SLOTS, service_name
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


DEFAULT_FLEET = defaults.FLEET
_SERVICE = re.compile(r"(.+)=(\d{1,9})", re.ASCII)
_HOST = re.compile(r"\[[0-9a-f:.]+\]|[\w.-]+", re.ASCII)


def parse_fleet(text: str) -> dict[str, int]:
    """Parse `forum_list=1,forum_detail=2` to `{"forum_list": 1, "forum_detail": 2}`. Raises ConfigError."""
    fleet: dict[str, int] = {}
    for part in _parts(text):
        if not (m := _SERVICE.fullmatch(part)):
            raise ConfigError(f"TRAWL_FLEET: {part!r} is not of the form spider=number; an example: {DEFAULT_FLEET}")
        try:
            service_name(m[1])
            check_size(m[1], int(m[2]))
        except ConfigError as error:
            raise ConfigError(f"TRAWL_FLEET: {error}") from None
        if m[1] in fleet:
            raise ConfigError(f"TRAWL_FLEET: {m[1]} is named twice; name each spider once")
        fleet[m[1]] = int(m[2])
    if not fleet:
        raise ConfigError(f"TRAWL_FLEET is empty; name at least one service, such as {DEFAULT_FLEET}")
    return fleet


def check_size(service: str, size: object) -> int:
    """Return `size` if it is a valid size of a service. Raises ConfigError."""
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= MOST_SLOTS:
        raise ConfigError(f"{service}={size!r}: the number of crawlers is a whole number from 0 to {MOST_SLOTS}")
    return size


def parse_hosts(text: str) -> frozenset[str]:
    """Parse `exporter, 10.0.0.7`: hosts without ports, in lower case. Raises ConfigError."""
    names = _parts(text.lower())
    if wrong := [name for name in names if not _HOST.fullmatch(name)]:
        raise ConfigError(
            f"TRAWL_EXPORTER_HOSTS: {wrong[0]!r} is not a host name: write names without ports, such as exporter,10.0.0.7"
        )
    return frozenset(names)


def parse_login(text: str) -> tuple[str, str] | None:
    """Parse `user:password`; None for an empty text. Raises ConfigError, which does not show them."""
    if not text:
        return None
    user, _, password = text.partition(":")
    if not (user and password) or "," in text:  # Flower reads a comma as the end of this pair
        raise ConfigError("TRAWL_FLOWER_AUTH is not of the form user:password (without commas): correct it, or unset it")
    return user, password


def parse_names(text: str) -> tuple[str, ...]:
    """Parse `a, b` to `("a", "b")`."""
    return tuple(_parts(text))


def _parts(text: str) -> list[str]:
    return [part for part in (part.strip() for part in text.split(",")) if part]
