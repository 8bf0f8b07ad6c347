"""The Redis side of Trawl: the frontier, and Scrapy's components on it.

Import from the modules. Public are those that scrapy-redis has, too (`scheduler`, `dupefilter`, `queue`, `spiders`, `pipelines`,
`stats`, `connection`, `defaults`, `picklecompat`, `utils`); for settings `fingerprint` and `extensions`; for scripts `errors`,
`keys`, `inspector`, `dead`, `seeds` and `items`. The map of all others is in `docs/architecture.md`.

This file imports none of them: the core would then import Scrapy, and each reader of a key would wait for it. The two functions
that projects written for scrapy-redis import from the package are loaded on first access.
"""

from __future__ import annotations

from typing import Any

__author__ = "The Trawl authors"
__email__ = "none; open an issue"
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in ("get_redis", "get_redis_from_settings"):
        from . import connection

        return getattr(connection, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
