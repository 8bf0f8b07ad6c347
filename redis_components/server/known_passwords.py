"""Publicly known passwords: the ones of the example files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote

from redis_components.errors import ConfigError

from .variables import variable

EXAMPLE = "change-me"
"""The password of `deploy/.env.example`."""
_SECRET_NAMES = (
    *("TRAWL_REDIS_URL", "TRAWL_BROKER_URL", "TRAWL_DATABASE_URL", "TRAWL_REDIS_PASSWORD", "TRAWL_FLOWER_AUTH"),
    *("FLOWER_BASIC_AUTH", "REDISCLI_AUTH", "TRAWL_API_READ_TOKEN", "TRAWL_API_ACT_TOKEN"),
    "TRAWL_SIGNING_KEY",
)
_WORD = re.compile(r"(?<![\w-])change-me(?![\w-])", re.IGNORECASE)


def example_secrets(environment: Mapping[str, str]) -> list[str]:
    """Return the variables with the example's password. Raises ConfigError for a value's file that cannot be read."""
    return [name for name in _SECRET_NAMES if _WORD.search(unquote(variable(name, environment) or ""))]


def refuse_example_secrets(environment: Mapping[str, str]) -> None:
    """Raise ConfigError for a password that was copied from the example and not changed."""
    if found := example_secrets(environment):
        raise ConfigError(
            f"{', '.join(found)}: the password is {EXAMPLE!r}, as in deploy/.env.example, which everybody knows:"
            " write one of your own into .env, for example from openssl rand -hex 24"
        )
