"""Stats of a service that become metrics: which ones, by the Scrapy setting STATS_METRICS of its project or spider.

    STATS_METRICS = {"bbs/posts_seen": "counter", "bbs/{forum}/depth": "gauge"}

`{name}` stands for one part between slashes and becomes a label. A list of patterns means counters. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from redis_components.errors import ConfigError

SETTING = "STATS_METRICS"
PREFIX = "trawl_stat_"
MOST_PATTERNS = 50  # of one service
MOST_SERIES = 200  # of one pattern: label values come from pages, and Prometheus keeps each for ever
MOST_LABEL = 100  # characters of a label's value
EXAMPLE = 'STATS_METRICS = {"bbs/posts_seen": "counter", "bbs/{forum}/depth": "gauge"}'

_PART = re.compile(r"\{([a-z][a-z0-9_]{0,39})\}|([^{}/\x00-\x20]{1,80})")
_TAKEN = {"service", "spider"}


class StatKind(StrEnum):
    """Prometheus's type of a metric."""

    COUNTER = "counter"  # only grows: `inc_value`
    GAUGE = "gauge"  # goes up and down: `set_value` in each process, or `inc_value` by plus and minus


@dataclass(frozen=True)
class StatMetric:
    """One pattern."""

    pattern: str
    kind: StatKind

    @classmethod
    def parse(cls, pattern: object, kind: object) -> StatMetric:
        """Parse a pattern and its kind. Raises ConfigError, which names the pattern."""
        if not isinstance(pattern, str) or not pattern or len(pattern) > 200:
            raise ConfigError(f"{SETTING}: {pattern!r:.80} is not the name of a stat; for example: {EXAMPLE}")
        if kind not in tuple(StatKind):
            raise ConfigError(f"{SETTING}: {pattern!r}: {kind!r:.80} is not a kind of metric: write counter or gauge")
        parts = [_PART.fullmatch(part) for part in pattern.split("/")]
        labels = [part[1] for part in parts if part and part[1]]
        if not all(parts) or all(part and part[1] for part in parts):
            raise ConfigError(f"{SETTING}: {pattern!r} is not of the form word/{{label}}/word; for example: {EXAMPLE}")
        if wrong := [one for one in labels if one in _TAKEN or labels.count(one) > 1]:
            raise ConfigError(f"{SETTING}: {pattern!r}: the label {wrong[0]!r} is taken: choose another name for it")
        one = cls(pattern, StatKind(str(kind)))
        if one.metric.removesuffix("_total") == PREFIX:
            raise ConfigError(f"{SETTING}: {pattern!r} has no ASCII letters or digits to name a metric by: rename the stat")
        return one

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The names of its labels, without `service` and `spider`."""
        return tuple(re.findall(r"\{(\w+)\}", self.pattern))

    @cached_property
    def metric(self) -> str:
        """`trawl_stat_bbs_posts_seen_total`: of a pattern's parts those that are not labels."""
        words = "_".join(part for part in self.pattern.split("/") if not part.startswith("{"))
        name = re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")
        total = "_total" if self.kind is StatKind.COUNTER and not name.endswith("_total") else ""
        return f"{PREFIX}{name}{total}"

    @cached_property
    def _form(self) -> re.Pattern[str]:
        parts = (f"([^/]{{1,{MOST_LABEL}}})" if part.startswith("{") else re.escape(part) for part in self.pattern.split("/"))
        return re.compile("/".join(parts))

    def values(self, stat: str) -> tuple[str, ...] | None:
        """Return the values of the labels in the name of a stat; None where it does not fit."""
        found = self._form.fullmatch(stat)
        return found.groups() if found else None


def stat_metrics(setting: object) -> tuple[StatMetric, ...]:
    """Return the metrics that the setting names. Raises ConfigError."""
    if not setting:
        return ()
    if isinstance(setting, str):
        setting = [part.strip() for part in setting.split(",") if part.strip()]
    if isinstance(setting, list | tuple) and all(isinstance(one, str) for one in setting):
        setting = dict.fromkeys(setting, StatKind.COUNTER)
    if not isinstance(setting, Mapping):
        raise ConfigError(f"{SETTING} = {setting!r:.80} is not a table of stats: write for example {EXAMPLE}")
    if len(setting) > MOST_PATTERNS:
        raise ConfigError(
            f"{SETTING} names {len(setting)} stats: at most {MOST_PATTERNS}; a pattern with a label stands for many"
        )
    found = tuple(StatMetric.parse(pattern, kind) for pattern, kind in setting.items())
    seen: dict[str, str] = {}
    for one in found:
        if (other := seen.setdefault(one.metric, one.pattern)) != one.pattern:
            raise ConfigError(f"{SETTING}: {other!r} and {one.pattern!r} would both be {one.metric}: rename one of the stats")
    return found


def readable_metrics(recorded: Mapping[str, Any]) -> Iterator[StatMetric]:
    """Yield the metrics of a crawl's record; invalid entries are left out."""
    for pattern, kind in list(recorded.items())[:MOST_PATTERNS]:
        try:
            yield StatMetric.parse(pattern, kind)
        except ConfigError:
            continue
