"""Settings that a crawl may get from whoever can send a task or call the API; an operator's commands may set any."""

from __future__ import annotations

from collections.abc import Iterable

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


def check_settings(names: Iterable[str]) -> None:
    """Raise ConfigError for a setting that only an operator's command or the project may set."""
    if foreign := sorted(set(names) - ALLOWED_SETTINGS):
        raise ConfigError(
            f"{', '.join(foreign)}: not to be set by a task or by the API, which have to be told less than an operator; set it in"
            f" the project's settings, or use trawl run -s. Allowed: {', '.join(sorted(ALLOWED_SETTINGS))}"
        )
