"""What people name: a service (`forum_detail`), one of its slots (`forum_detail/2`), or a site, in either of two ways."""

from __future__ import annotations

from redis_components.errors import ConfigError
from redis_components.fleet.records import parse_slot

OF_SITE = "The same as SITE."
"""Help of the option --site, where a command has the argument, too."""


def either(site: str | None, option: str | None) -> str | None:
    """The site, whether it was given as SITE or as `--site SITE`. Raises ConfigError for two."""
    if site is not None and option is not None and site != option:
        raise ConfigError(f"{site!r} and --site {option!r} are two sites: name one")
    return option if site is None else site


def parse_target(text: str) -> tuple[str, int | None]:
    """`("forum_detail", 2)` for `forum_detail/2`, `("forum_detail", None)` for `forum_detail`. Raises ConfigError."""
    if text and "/" not in text:
        return text, None
    try:
        return parse_slot(text)
    except ValueError:
        raise ConfigError(f"{text!r} is neither a service nor a slot: write for example forum_detail or forum_detail/2") from None
