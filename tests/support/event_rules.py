"""Rules and outputs of events from a text."""

from __future__ import annotations

from forums.events.rules import Rules
from forums.events.rules import rules_of as rules_of_tables
from redis_components.server.untrusted_values import toml_table


def rules_of(text: str) -> Rules:
    """Parse the tables as they stand in `trawl.toml`. Raises ConfigError."""
    return rules_of_tables(toml_table(text))
