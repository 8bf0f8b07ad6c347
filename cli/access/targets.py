"""What people name: a service (`forum_detail`) or one of its slots (`forum_detail/2`)."""

from __future__ import annotations

from redis_components.errors import ConfigError
from redis_components.fleet.records import parse_slot


def parse_target(text: str) -> tuple[str, int | None]:
    """`("forum_detail", 2)` for `forum_detail/2`, `("forum_detail", None)` for `forum_detail`. Raises ConfigError."""
    if text and "/" not in text:
        return text, None
    try:
        return parse_slot(text)
    except ValueError:
        raise ConfigError(f"{text!r} is neither a service nor a slot: write for example forum_detail or forum_detail/2") from None
