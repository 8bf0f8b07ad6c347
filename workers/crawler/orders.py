"""Settings that a task or an API call may set for a crawl, and the words of a command that set them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from redis_components.errors import ConfigError

_SWITCH, _TEXT, _MOST = "a switch: true or false", "one line of text", 2**31
_LEAST = {
    **dict.fromkeys(("AUTOTHROTTLE_MAX_DELAY", "AUTOTHROTTLE_START_DELAY", "DOWNLOAD_DELAY", "CLOSESPIDER_TIMEOUT"), 0.0),
    **dict.fromkeys(("AUTOTHROTTLE_TARGET_CONCURRENCY", "DOWNLOAD_TIMEOUT"), 0.001),
    **dict.fromkeys(("CONCURRENT_ITEMS", "CONCURRENT_REQUESTS", "CONCURRENT_REQUESTS_PER_DOMAIN"), 1),
    **dict.fromkeys(("CLOSESPIDER_ERRORCOUNT", "CLOSESPIDER_ITEMCOUNT", "CLOSESPIDER_PAGECOUNT", "DEPTH_LIMIT"), 0),
    **dict.fromkeys(("DOWNLOAD_MAXSIZE", "REDIRECT_MAX_TIMES", "RETRY_TIMES"), 0),
    "DEPTH_PRIORITY": -1000,
}
"""Smallest values of the settings that are numbers, whole ones if these are: with fewer than one request a crawl never ends."""
# Who can send a task could have any class loaded, or any file written, by the settings that name them.
ALLOWED_SETTINGS = {
    **dict.fromkeys(("AUTOTHROTTLE_ENABLED", "COOKIES_ENABLED", "RANDOMIZE_DOWNLOAD_DELAY"), _SWITCH),
    **dict.fromkeys(("REDIRECT_ENABLED", "RETRY_ENABLED", "ROBOTSTXT_OBEY"), _SWITCH),
    **{name: f"a {'whole ' * isinstance(least, int)}number from {least} to {_MOST}" for name, least in _LEAST.items()},
    "USER_AGENT": _TEXT,
}
"""The form of the value of each."""


def pairs(option: str, words: Iterable[str] | None) -> dict[str, str]:
    """Return `{"k": "v"}` for `["k=v"]`. Raises ConfigError that names the option."""
    found = {}
    for word in words or ():
        name, equals, value = word.partition("=")
        if not (name and equals):
            raise ConfigError(f"{option} {word!r:.100} must have the form NAME=VALUE")
        found[name] = value
    return found


def check_settings(settings: Mapping[str, Any]) -> None:
    """Raise ConfigError for a setting that only an operator's command or the project may set, and for a value that it cannot
    have; a command line has numbers and switches as texts.
    """
    if foreign := sorted(set(settings) - set(ALLOWED_SETTINGS)):
        raise ConfigError(
            f"{', '.join(foreign)}: cannot be set by a task or by the API, which have fewer rights than an operator; set it in"
            f" the project's settings, or use trawl job start -s. Allowed: {', '.join(sorted(ALLOWED_SETTINGS))}"
        )
    for name, value in settings.items():
        if not _fits(name, value):
            raise ConfigError(f"{name} = {str(value)[:100]!r}: must be {ALLOWED_SETTINGS[name]}")


def _fits(name: str, value: Any) -> bool:
    text = value if isinstance(value, str) else str(value) if isinstance(value, int | float) else ""
    if ALLOWED_SETTINGS[name] is _SWITCH:
        return text.lower() in ("true", "false", "0", "1")
    if ALLOWED_SETTINGS[name] is _TEXT:
        return isinstance(value, str) and value.isprintable()
    try:
        found = type(_LEAST[name])(text)
    except ValueError:  # also of `True`, 1.5 for a whole number, and of more digits than Python reads
        return False
    return _LEAST[name] <= found <= _MOST  # neither NaN nor infinity is
