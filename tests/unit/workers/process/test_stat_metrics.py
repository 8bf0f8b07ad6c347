"""STATS_METRICS: which stats of a service become metrics."""

from __future__ import annotations

from typing import Any

import pytest

from redis_components.errors import ConfigError
from workers.process.stat_metrics import MOST_PATTERNS, is_named, stat_patterns


def test_a_list_a_text_and_the_table_of_before_name_the_same() -> None:
    named = ("a", "b/{c}")
    assert (
        stat_patterns(["a", "b/{c}"]) == stat_patterns("a, b/{c}") == stat_patterns({"a": "counter", "b/{c}": "gauge"}) == named
    )
    assert stat_patterns(None) == stat_patterns({}) == stat_patterns("") == ()


@pytest.mark.parametrize("stat", ["bbs/news/depth", "bbs/a/b/depth"])
def test_a_part_in_braces_or_a_star_stands_for_any_text(stat: str) -> None:
    assert is_named(stat, ["bbs/{forum}/depth"])
    assert is_named(stat, {"bbs/*/depth": "gauge"})
    assert not is_named(stat, ["bbs/{forum}/posts", "depth", ""])


@pytest.mark.parametrize("setting", [7, ["a", 1], {1: "counter"}, [f"s{n}" for n in range(MOST_PATTERNS + 1)]])
def test_what_cannot_be_a_list_of_stats_is_one_line(setting: Any) -> None:
    with pytest.raises(ConfigError, match=r"^STATS_METRICS") as caught:
        stat_patterns(setting)
    assert "\n" not in str(caught.value)
