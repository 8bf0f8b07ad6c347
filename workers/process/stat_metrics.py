"""Stats of a service that become the metric `trawl_stat`, by the Scrapy setting STATS_METRICS of its project or spider.

    STATS_METRICS = ["bbs/posts_seen", "bbs/{forum}/depth"]

`{name}`, or `*`, stands for any text. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import islice

from redis_components.errors import ConfigError

SETTING = "STATS_METRICS"
MOST_PATTERNS = 50  # of one service
MOST_SERIES = 200  # of one service: names come from pages, and Prometheus keeps each for ever


def stat_patterns(setting: object) -> tuple[str, ...]:
    """Return the patterns that the setting names; of a table its keys. Raises ConfigError."""
    found = setting.split(",") if isinstance(setting, str) else setting or ()
    if not isinstance(found, list | tuple | Mapping) or not all(isinstance(one, str) for one in found):
        raise ConfigError(f'{SETTING} = {setting!r:.80} is not a list of stats: write for example ["bbs/posts_seen"]')
    if len(found) > MOST_PATTERNS:
        raise ConfigError(f"{SETTING} names {len(found)} stats: at most {MOST_PATTERNS}; a pattern stands for many")
    return tuple(one.strip() for one in found if one.strip())


def is_named(stat: str, patterns: Iterable[str]) -> bool:
    """Return True if a stat fits one of the patterns of a crawl's record."""
    return any(fnmatchcase(stat, _glob(one)) for one in islice(patterns, MOST_PATTERNS))


@lru_cache(maxsize=1024)
def _glob(pattern: str) -> str:
    return re.sub(r"\{\w+\}", "*", pattern)
