"""Which stats of a service become metrics: what can be named, what each name becomes, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from redis_components.errors import ConfigError
from workers.process.stat_metrics import MOST_PATTERNS, StatKind, StatMetric, readable_metrics, stat_metrics


@pytest.mark.parametrize(
    ("pattern", "kind", "metric", "labels"),
    [
        ("bbs/posts_seen", "counter", "trawl_stat_bbs_posts_seen_total", ()),
        ("bbs/{forum}/depth", "gauge", "trawl_stat_bbs_depth", ("forum",)),
        ("{site}/{kind}/Pages-Read", "counter", "trawl_stat_pages_read_total", ("site", "kind")),
        ("pages_total", "counter", "trawl_stat_pages_total", ()),
        ("downloader/response_status_count/{code}", "counter", "trawl_stat_downloader_response_status_count_total", ("code",)),
    ],
)
def test_a_pattern_becomes_a_name_and_labels(pattern: str, kind: str, metric: str, labels: tuple[str, ...]) -> None:
    (one,) = stat_metrics({pattern: kind})
    assert (one.metric, one.labels, one.kind) == (metric, labels, kind)


def test_a_list_or_a_text_names_counters() -> None:
    assert stat_metrics(["a", "b/{c}"]) == stat_metrics("a, b/{c}") == stat_metrics({"a": "counter", "b/{c}": "counter"})
    assert stat_metrics(None) == stat_metrics({}) == stat_metrics("") == ()


def test_a_label_is_one_part_of_a_stats_name_of_a_bounded_length() -> None:
    one = StatMetric("bbs/{forum}/posts", StatKind.COUNTER)
    assert one.values("bbs/news/posts") == ("news",)
    assert one.values("bbs/新闻/posts") == ("新闻",)
    for stat in ("bbs/posts", "bbs//posts", "bbs/a/b/posts", "xbbs/a/posts", f"bbs/{'x' * 101}/posts"):
        assert one.values(stat) is None
    assert StatMetric("a.b", StatKind.COUNTER).values("axb") is None, "a dot is a dot"


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"bbs/posts": "histogram"}, "'histogram' is not a kind of metric: write counter or gauge"),
        ({"bbs/posts": ["counter"]}, "is not a kind of metric"),
        ({"": "counter"}, "'' is not the name of a stat"),
        ({7: "counter"}, "7 is not the name of a stat"),
        ({"{forum}": "counter"}, "'{forum}' is not of the form"),
        ({"bbs/{Forum}/x": "counter"}, "is not of the form"),
        ({"bbs//x": "counter"}, "is not of the form"),
        ({"bbs/{a}{b}": "counter"}, "is not of the form"),
        ({"bbs/{a}/{a}": "counter"}, "the label 'a' is taken"),
        ({"bbs/{service}": "counter"}, "the label 'service' is taken"),
        ({"发帖": "counter"}, "rename the stat"),
        ({"a/b": "counter", "a_b": "counter"}, "'a/b' and 'a_b' would both be trawl_stat_a_b_total"),
        (7, "7 is not a table of stats"),
        ([{}], "is not a table of stats"),
        ([f"s{n}" for n in range(MOST_PATTERNS + 1)], "names 51 stats"),
    ],
)
def test_what_cannot_be_a_metric_is_one_line_that_names_it(setting: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        stat_metrics(setting)
    assert said in str(caught.value)
    assert str(caught.value).startswith("STATS_METRICS")


def test_what_somebody_else_wrote_into_a_record_is_left_out() -> None:
    recorded = {"a": "counter", "b": "evil", "{x}": "gauge", "c/{d}": "gauge"}
    assert [one.pattern for one in readable_metrics(recorded)] == ["a", "c/{d}"]
