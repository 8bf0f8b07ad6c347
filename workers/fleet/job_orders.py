"""Settings that a task or an API call may set for a crawl; an operator's commands may set any."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from redis_components.errors import ConfigError

# Who can send a task could have any class loaded, or any file written, by the settings that name them.
ALLOWED_SETTINGS = frozenset(
    {
        "AUTOTHROTTLE_ENABLED",
        "AUTOTHROTTLE_MAX_DELAY",
        "AUTOTHROTTLE_START_DELAY",
        "AUTOTHROTTLE_TARGET_CONCURRENCY",
        "CLOSESPIDER_ERRORCOUNT",
        "CLOSESPIDER_ITEMCOUNT",
        "CLOSESPIDER_PAGECOUNT",
        "CLOSESPIDER_TIMEOUT",
        "CONCURRENT_ITEMS",
        "CONCURRENT_REQUESTS",
        "CONCURRENT_REQUESTS_PER_DOMAIN",
        "COOKIES_ENABLED",
        "DEPTH_LIMIT",
        "DEPTH_PRIORITY",
        "DOWNLOAD_DELAY",
        "DOWNLOAD_MAXSIZE",
        "DOWNLOAD_TIMEOUT",
        "RANDOMIZE_DOWNLOAD_DELAY",
        "REDIRECT_ENABLED",
        "REDIRECT_MAX_TIMES",
        "RETRY_ENABLED",
        "RETRY_TIMES",
        "ROBOTSTXT_OBEY",
        "USER_AGENT",
    }
)


def check_settings(settings: Mapping[str, Any]) -> None:
    """Raise ConfigError for a setting that only an operator's command or the project may set, and for a value that is neither a
    switch, a finite number nor another text.
    """
    if foreign := sorted(set(settings) - ALLOWED_SETTINGS):
        raise ConfigError(
            f"{', '.join(foreign)}: cannot be set by a task or by the API, which have fewer rights than an operator; set it in"
            f" the project's settings, or use trawl run -s. Allowed: {', '.join(sorted(ALLOWED_SETTINGS))}"
        )
    for name, value in settings.items():
        try:
            is_wrong = not isinstance(value, bool | int | float | str) or not math.isfinite(float(value))
        except ValueError:  # a text
            is_wrong = False
        except OverflowError:
            is_wrong = True
        if is_wrong:
            raise ConfigError(f"{name} = {str(value)!r:.100}: must be a switch, a finite number or a text")
