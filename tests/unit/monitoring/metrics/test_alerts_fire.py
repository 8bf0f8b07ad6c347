"""Each alert fires while its trouble lasts and is over afterwards, by Prometheus's own engine (`promtool test rules`)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from .test_alerts import FOLDER, PROMTOOL

Case = tuple[dict[str, str], int, int]
"""Series and their values, one a minute, as promtool writes them; the minutes at which it fires, and is over."""

A = 'service="a",spider="a"'
CASES: dict[str, Case] = {
    "TrawlExporterDown": ({'up{job="trawl"}': "0x5 1x5"}, 3, 8),
    "TrawlRedisAway": ({"trawl_redis_up": "0x5 1x5"}, 3, 8),
    "TrawlUnreadable": ({'trawl_keys_readable{part="nodes"}': "0x9 1x5"}, 7, 12),
    "TrawlRedisTrouble": ({'trawl_redis_trouble{trouble="no_aof"}': "1x5 0x5"}, 3, 8),
    "TrawlRedisFillsUp": (
        {
            "trawl_redis_used_memory_bytes": "100000000+1000000x100 200000000x100",
            "trawl_redis_max_memory_bytes": "300000000x200",
        },
        90,
        180,
    ),
    "TrawlForeignValues": ({"trawl_foreign_values": "3x9 0x5"}, 7, 12),
    "TrawlFleetTooSmall": ({f"trawl_crawlers_up{{{A}}}": "1x5 3x5", f"trawl_crawlers_desired{{{A}}}": "3x11"}, 4, 8),
    "TrawlPageStands": ({f'trawl_crawler_oldest_page_seconds{{{A},crawler="a/0"}}': "400x5 0x5"}, 3, 8),
    "TrawlCrawlerGivenUp": ({f'trawl_crawlers{{{A},state="refused"}}': "1x5 0x10"}, 3, 12),
    "TrawlCrawlerRestartsOften": ({f'trawl_crawler_restarts_total{{{A},crawler="a/0"}}': "0+1x10 10x40"}, 10, 40),
    "TrawlNodeGone": ({'trawl_node_up{node="n1"}': "0x3 1x3"}, 1, 6),
    "TrawlRollFailed": ({"trawl_roll_failed": "1x3 0x3"}, 1, 6),
    "TrawlNoBeat": ({"trawl_beat_leads": "0x3 1x3"}, 2, 6),
    "TrawlStalled": (
        {
            f"collector_task_queue_size{{{A}}}": "0x50",
            f"collector_request_queue_size{{{A}}}": "7x50",
            f"trawl_leased_requests{{{A}}}": "0x50",
            f"trawl_acked_requests_total{{{A}}}": "5x20 5+1x20",
        },
        15,
        30,
    ),
    "TrawlTaskQueueFillsUp": (
        {
            f"collector_task_queue_size{{{A}}}": "0+100x100 10000x100",
            f"trawl_task_queue_limit{{{A}}}": "30000x200",
        },
        90,
        180,
    ),
    "TrawlTaskQueueFull": (
        {f"collector_task_queue_size{{{A}}}": "90x5 5x5", f"trawl_task_queue_limit{{{A}}}": "90x10"},
        4,
        8,
    ),
    "TrawlTasksOutrunCrawlers": (
        {
            f"collector_task_queue_size{{{A}}}": "0+100x100 10000x100",
            f"trawl_start_tasks_taken_total{{{A}}}": "0+60x200",
        },
        90,
        180,
    ),
    "TrawlTooFewItems": (
        {
            f"collector_scraped_item_count{{{A}}}": "0+4x30 120+9x40",
            f"trawl_items_per_minute_wanted{{{A}}}": "5x70",
        },
        25,
        50,
    ),
    "TrawlHeldForLong": ({f'trawl_paused{{{A},site="",kind="pause"}}': "1x1500 0x10"}, 1450, 1505),
    "TrawlNoItems": (
        {
            f"collector_scraped_item_count{{{A}}}": "5x40 5+1x40",
            f"collector_downloader_response_count{{{A}}}": "0+10x90",
        },
        35,
        50,
    ),
    "TrawlSiteRefuses": (
        {
            f'collector_downloader_response_status_count{{{A},status_code="429"}}': "0+5x20 100x20",
            f"collector_downloader_response_count{{{A}}}": "0+10x45",
        },
        12,
        30,
    ),
    "TrawlBoardsStale": ({'trawl_forums_stale{site="demo"}': "2x15 0x5"}, 13, 18),
    "TrawlItemsTooSlow": (
        {
            'trawl_publish_to_store_seconds_bucket{site="demo",le="60"}': "0x40 0+10x40",
            'trawl_publish_to_store_seconds_bucket{site="demo",le="3600"}': "0+10x85",
            'trawl_publish_to_store_seconds_bucket{site="demo",le="+Inf"}': "0+10x85",
        },
        35,
        75,
    ),
    "TrawlWriterLate": ({"trawl_writer_lag_seconds": "400x10 0x5"}, 8, 13),
    "TrawlGapStaysOpen": ({'trawl_forum_gaps{site="demo"}': "1x1500 0x10"}, 1450, 1505),
    "TrawlItemsBackedUp": ({f"trawl_items_backed_up{{{A}}}": "1x5 0x5"}, 3, 8),
    "TrawlItemsPileUp": (
        {
            f"trawl_items_waiting{{{A}}}": "60000x9 0x5",
            f"trawl_bad_items{{{A}}}": "0x15",
            f"trawl_items_limit{{{A}}}": "0x15",
        },
        7,
        12,
    ),
    "TrawlRequestsDie": ({f"trawl_dead_requests{{{A}}}": "0x5 5x60"}, 8, 40),
    "TrawlItemsRefused": ({f"trawl_bad_items{{{A}}}": "0x5 5x60"}, 8, 40),
    "TrawlSiteBreaker": ({'trawl_site_breaker{site="demo",cause="login"}': "1x70 _x10"}, 65, 78),
    "TrawlRawPagesDropped": ({f"trawl_raw_pages_dropped_total{{{A}}}": "0x5 7x90"}, 10, 80),
    "TrawlDeadMessages": ({"trawl_dead_messages": "0x3 2x3 0x5"}, 5, 10),
    "TrawlRunVerdict": ({'trawl_run_alerting{group="shops",verdict="moved"}': "0x3 2x3 0x5"}, 5, 10),
    "TrawlRunLate": ({'trawl_run_late_seconds{group="shops"}': "0x3 60x4 0x5"}, 6, 11),
}


@pytest.mark.processes
@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (apt-get install prometheus, or PROMTOOL=path)")
def test_each_alert_fires_and_is_over(tmp_path: Path) -> None:
    rules = yaml.safe_load((FOLDER / "alerts.yml").read_text("utf-8"))["groups"][0]["rules"]
    assert [rule["alert"] for rule in rules] == list(CASES)
    tests = [
        {
            "name": name,
            "interval": "1m",
            "input_series": [{"series": one, "values": values} for one, values in series.items()],
            "promql_expr_test": [_firing(name, fires, [{"labels": "{}", "value": 1}]), _firing(name, over, [])],
        }
        for name, (series, fires, over) in CASES.items()
    ]
    file = {"rule_files": [str(FOLDER / "alerts.yml")], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "tests.yml").write_text(yaml.safe_dump(file))
    command = [str(PROMTOOL), "test", "rules", str(tmp_path / "tests.yml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _firing(name: str, minute: int, expected: list[dict[str, object]]) -> dict[str, object]:
    return {
        "expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}})',
        "eval_time": f"{minute}m",
        "exp_samples": expected,
    }
