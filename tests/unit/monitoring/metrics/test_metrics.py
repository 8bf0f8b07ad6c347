"""What Prometheus gets, from readings made by hand."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fleet_operations.overview import Overview, ServiceView
from fleet_operations.overview.reader import FLEET_PARTS
from forums.overview import Boards, ForumSites
from forums.overview.boards import WatchedForum
from forums.overview.model import ForumSitesReader
from forums.state.database_state import DelayHistogram
from forums.state.keys import ForumState, Spent
from monitoring.metrics.exposition import text_of
from monitoring.metrics.fleet import METRICS, reference
from redis_components.admin.health import NAMES, RedisMemory
from redis_components.admin.inspector import CrawlSnapshot
from redis_components.admin.lanes import LaneState, LaneView
from redis_components.frontier.holds import Hold, HoldKind
from redis_components.politeness.limits import LaneLimits
from workers.state.beats import BeatView
from workers.state.group_runs import GroupRun
from workers.state.holds import Breaker, BreakerState, Held
from workers.state.nodes import NodeRecord
from workers.state.registry import CrawlerRecord, CrawlerState

ROOT = Path(__file__).parents[4]
NOW = 1_767_225_600.0
NO_TROUBLE = {f'trawl_redis_trouble{{trouble="{name}"}}': 0 for name in NAMES}
CRAWL = CrawlSnapshot(
    spider="forum_list",
    start_tasks=1,
    ready=2,
    oldest_ready_at=NOW - 80,
    leased=3,
    leased_tasks=4,
    parked=31,
    parked_tasks=32,
    overflow=46,
    backlog=33,
    thread_records=34,
    start_tokens=35,
    dead=5,
    fingerprints=6,
    false_positive_rate=0.25,
    items=7,
    bad_items=8,
    item_bytes=46,
    max_items=15,
    owners=9,
    acked=10,
    reclaimed=11,
    stats={
        "downloader/request_count": "12",
        "downloader/response_count": "13",
        "downloader/response_bytes": "14",
        "item_scraped_count": "15",
        "downloader/response_status_count/200": "16",
        "downloader/response_status_count/404": "17",
        "sites/demo/list/blocked/login": "41",
        "sites/demo/list/read": "42",
        "raw/kept": "43",
        "raw/bytes": "44",
        "raw/dropped": "45",
        "retry/count": "71",
        "downloader/exception_count": "72",
        "spider_exceptions/count": "73",
        "start_tasks/queued": "82",
        "start_tasks/refused": "83",
        "start_tasks/taken": "84",
        "bbs/posts": "87",
    },
)
CRAWLER = CrawlerRecord(
    spider="forum_list",
    number=0,
    pid=4711,
    state=CrawlerState.RUNNING,
    beat_at=NOW - 2,
    pages_per_s=18.5,
    in_flight=19,
    oldest_s=74.0,
    oldest="the download of http://a/1",
    rss_bytes=20,
    lag_s=0.25,
    restarts=21,
)
NODE = NodeRecord(name="worker@host", capacity=24, taken=23, beat_at=NOW - 1)
DEMO_IS_PAUSED = Held(hold=Hold(word=HoldKind.PAUSE, at=NOW - 60, by="ops@host", reason="<they asked>"), site="demo")

DEMO_IS_BROKEN = Breaker(state=BreakerState.OPEN, cause="login", reason="<a login page>", since=NOW - 30)

BOARDS = (
    WatchedForum(site="demo", forum="f1", state=ForumState(scanned_at=NOW - 70, tried_at=NOW - 70, errors=2), due_at=NOW - 10),
    WatchedForum(site="shop", forum="f2", state=ForumState(gap_at=NOW - 9), due_at=NOW - 400),
)
SITES = ForumSites(
    breakers={"demo": DEMO_IS_BROKEN},
    boards=Boards(BOARDS, NOW),
    spent={"demo": Spent(scan=24, detail=25, check=26, backfill=27)},
    budgets={"demo": 1200.0},
    lanes=(
        LaneView(
            lane="shop",
            limits=LaneLimits(rate=2.0),
            state=LaneState(left_alone_s=61.0, refusals=62, refused_s=63.0, slowed=0.5, robots=None),
            rate_now=0.5,
            at_work=None,
            waiting=64,
            quiet_s=None,
            next_s=65.0,
        ),
    ),
    delays={"demo": DelayHistogram(counts=(47, 1, 0, 0, 0, 0, 0, 0, 1), sum_s=99.5)},
    writer_lag_s=78.25,
)


DECLARED: Any = {"metrics": {"bbs/posts": "counter"}, "max_waiting": 85, "min_items_per_minute": 86.5}


RUN = GroupRun(
    id="shops-1", group="shops", members=90, counts={"fine": 2, "moved": 3}, alerts={"moved": 1}, deadline_at=NOW, late=NOW + 91
)


def viewed(
    *crawlers: CrawlerRecord, crawl: CrawlSnapshot = CRAWL, held: tuple[Held, ...] = (DEMO_IS_PAUSED,), desired: int | None = 22
) -> Overview:
    """A fleet of one service, whose crawlers are these."""
    return Overview(
        held=held,
        sites=SITES,
        seconds=0.5,
        now=NOW,
        parts=("forum_list", *FLEET_PARTS, *ForumSitesReader.parts),
        services=(
            replace(
                ServiceView.of(crawl, desired, crawlers, held, NOW),
                metrics={"bbs/posts": "counter"},
                max_waiting=85,
                min_items_per_minute=86.5,
            ),
        ),
        crawlers=crawlers,
        nodes=(NODE,),
        runs=(RUN,),
        beats=BeatView(leader="host:1", waiting=(), silent_s=0.75),
        dead_messages=28,
        memory=RedisMemory(used=79, limit=80),
    )


VIEW = viewed(CRAWLER)


def _text(reading: Overview) -> str:
    return text_of(reading).decode()


def _samples(reading: Overview) -> dict[str, float]:
    """`name{label="value",...}` without service and spider -> value."""
    found = {}
    for line in _text(reading).splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            found[re.sub(r',?(service|spider)="[^"]*"', "", name).replace("{,", "{").replace("{}", "")] = float(value)
    return found


def test_every_figure_comes_out_under_its_name() -> None:
    samples = _samples(VIEW)
    left_out = ("trawl_crawlers{", "trawl_run_members{", "trawl_run_alerting{")
    assert samples['trawl_run_members{group="shops",verdict="moved"}'] == 3
    assert samples['trawl_run_alerting{group="shops",verdict="moved"}'] == 1
    assert {name: value for name, value in samples.items() if not name.startswith(left_out)} == {
        'trawl_run_late_seconds{group="shops"}': 91,
        "collector_task_queue_size": 1,
        "collector_request_queue_size": 2,
        "trawl_task_queue_limit": 85,
        "trawl_start_tasks_queued_total": 82,
        "trawl_start_tasks_refused_total": 83,
        "trawl_start_tasks_taken_total": 84,
        "trawl_items_per_minute_wanted": 86.5,
        "trawl_oldest_ready_seconds": 80,
        "trawl_retries_total": 71,
        "trawl_download_exceptions_total": 72,
        "trawl_spider_exceptions_total": 73,
        "trawl_writer_lag_seconds": 78.25,
        "trawl_redis_used_memory_bytes": 79,
        "trawl_redis_max_memory_bytes": 80,
        "trawl_leased_requests": 3,
        "trawl_leased_start_tasks": 4,
        "trawl_parked_requests": 31,
        "trawl_parked_start_tasks": 32,
        "trawl_overflow_start_tasks": 46,
        "trawl_backlog_start_tasks": 33,
        "trawl_thread_records": 34,
        "trawl_start_tokens": 35,
        "trawl_dead_requests": 5,
        "collector_dupefilter_size": 6,
        "trawl_dupefilter_false_positive_rate": 0.25,
        "trawl_items_waiting": 7,
        "trawl_bad_items": 8,
        "trawl_item_bytes": 46,
        "trawl_items_limit": 15,
        "trawl_items_backed_up": 1,
        "trawl_crawl_owners": 9,
        "trawl_acked_requests_total": 10,
        "trawl_reclaimed_leases_total": 11,
        "collector_downloader_request_count": 12,
        "collector_downloader_response_count": 13,
        "collector_downloader_response_bytes": 14,
        "collector_scraped_item_count": 15,
        'collector_downloader_response_status_count{status_code="200"}': 16,
        'collector_downloader_response_status_count{status_code="404"}': 17,
        'trawl_crawler_pages_per_second{crawler="forum_list/0"}': 18.5,
        'trawl_crawler_requests_in_flight{crawler="forum_list/0"}': 19,
        'trawl_crawler_oldest_page_seconds{crawler="forum_list/0"}': 74,
        'trawl_crawler_resident_memory_bytes{crawler="forum_list/0"}': 20,
        'trawl_crawler_reactor_lag_seconds{crawler="forum_list/0"}': 0.25,
        'trawl_crawler_restarts_total{crawler="forum_list/0"}': 21,
        "trawl_crawlers_desired": 22,
        "trawl_crawlers_up": 1,
        'trawl_paused{kind="pause",site="demo"}': 1,
        'trawl_site_breaker{cause="login",site="demo"}': 1,
        'trawl_site_blocked_total{cause="login",kind="list",site="demo"}': 41,
        "trawl_raw_pages_total": 43,
        "trawl_raw_pages_dropped_total": 45,
        'trawl_forum_last_scan_timestamp_seconds{forum="f1",site="demo"}': NOW - 70,
        'trawl_forum_due_timestamp_seconds{forum="f1",site="demo"}': NOW - 10,
        'trawl_forum_due_timestamp_seconds{forum="f2",site="shop"}': NOW - 400,
        'trawl_forums_stale{site="demo"}': 0,
        'trawl_forums{site="demo"}': 1,
        'trawl_forums{site="shop"}': 1,
        'trawl_forums_stale{site="shop"}': 1,
        'trawl_forum_gaps{site="demo"}': 0,
        'trawl_forum_gaps{site="shop"}': 1,
        'trawl_forums_failing{site="demo"}': 1,
        'trawl_forums_failing{site="shop"}': 0,
        'trawl_site_requests_last_hour{lane="scan",site="demo"}': 24,
        'trawl_site_requests_last_hour{lane="detail",site="demo"}': 25,
        'trawl_site_requests_last_hour{lane="check",site="demo"}': 26,
        'trawl_site_requests_last_hour{lane="backfill",site="demo"}': 27,
        'trawl_site_budget_requests_per_hour{site="demo"}': 1200,
        'trawl_publish_to_store_seconds_bucket{le="5.0",site="demo"}': 47,
        **{
            f'trawl_publish_to_store_seconds_bucket{{le="{le}.0",site="demo"}}': 48
            for le in (15, 60, 300, 900, 3600, 21600, 86400)
        },
        'trawl_publish_to_store_seconds_bucket{le="+Inf",site="demo"}': 49,
        'trawl_publish_to_store_seconds_count{site="demo"}': 49,
        'trawl_publish_to_store_seconds_sum{site="demo"}': 99.5,
        'trawl_node_up{node="worker@host"}': 1,
        'trawl_node_capacity{node="worker@host"}': 24,
        'trawl_node_crawlers{node="worker@host"}': 23,
        "trawl_beat_leads": 1,
        "trawl_beat_silence_seconds": 0.75,
        "trawl_dead_messages": 28,
        "trawl_roll_failed": 0,
        "trawl_redis_up": 1,
        **{f'trawl_keys_readable{{part="{part}"}}': 1 for part in ("forum_list", *FLEET_PARTS, *ForumSitesReader.parts)},
        'trawl_stat{stat="bbs/posts"}': 87,
        "trawl_foreign_values": 0,
        **NO_TROUBLE,
        "trawl_scrape_duration_seconds": 0.5,
    }


def test_each_sample_carries_the_type_that_the_table_says_under_exactly_its_name() -> None:
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", _text(VIEW), re.MULTILINE))
    assert types == {spec.name: spec.kind for spec in METRICS}
    for line in _text(VIEW).splitlines():
        if not line.startswith("#"):
            name = re.split(r"[{ ]", line)[0]
            assert name in types or re.sub(r"_(bucket|sum|count)$", "", name) in types


def test_prometheus_reads_the_old_counters_as_counters() -> None:
    families = {family.name: family for family in text_string_to_metric_families(_text(VIEW))}
    assert families["collector_scraped_item_count"].type == "counter"
    assert families["collector_request_queue_size"].type == "gauge"


def test_service_and_spider_are_the_labels_of_every_crawl() -> None:
    assert 'collector_request_queue_size{service="forum_list",spider="forum_list"} 2.0' in _text(VIEW)


def test_counters_start_at_zero_before_the_first_page() -> None:
    samples = _samples(viewed(CRAWLER, crawl=replace(CRAWL, stats={})))
    assert samples["collector_scraped_item_count"] == 0
    assert not [name for name in samples if "status_code" in name]


def test_stats_that_are_no_numbers_or_no_status_make_no_samples() -> None:
    stats = {
        "item_scraped_count": "many",
        "downloader/response_status_count/200": "nan",
        "downloader/response_status_count/teapot": "1",
        "downloader/response_status_count/4041": "1",
        "item_scraped_count@crawler-1": "99",
    }
    samples = _samples(viewed(CRAWLER, crawl=replace(CRAWL, stats=stats)))
    assert samples["collector_scraped_item_count"] == 0
    assert not [name for name in samples if "status_code" in name]


@pytest.mark.parametrize(("stopped", "desired"), [({"service": "forum_list"}, 0), ({}, 0)])
def test_what_is_stopped_is_not_missed(stopped: dict[str, Any], desired: int) -> None:
    held = Held(hold=Hold(word=HoldKind.STOP), **stopped)
    assert _samples(viewed(CRAWLER, held=(held,)))["trawl_crawlers_desired"] == desired


def test_when_redis_is_away_nothing_is_left_of_what_it_once_said() -> None:
    away = Overview(failure="Redis is not running", seconds=3.0)
    assert _samples(away) == {"trawl_redis_up": 0, "trawl_scrape_duration_seconds": 3.0}


def test_what_cannot_be_read_is_left_out_and_said() -> None:
    unreadable = {"other": "WRONGTYPE", "crawlers": "bad", "roll": "bad"}
    services = tuple(
        ServiceView.of(CrawlSnapshot(spider=name), 1, (), (), NOW, fault="WRONGTYPE") for name in ("forum_list", "other")
    )
    samples = _samples(
        Overview(services=services, parts=("forum_list", "other", "crawlers", "roll"), now=NOW, unreadable=unreadable)
    )
    assert samples == {
        "trawl_redis_up": 1,
        "trawl_scrape_duration_seconds": 0,
        'trawl_keys_readable{part="forum_list"}': 1,
        'trawl_keys_readable{part="other"}': 0,
        "trawl_foreign_values": 0,
        **NO_TROUBLE,
        'trawl_keys_readable{part="crawlers"}': 0,
        'trawl_keys_readable{part="roll"}': 0,
    }


@pytest.mark.parametrize(
    ("changes", "state", "up"),
    [
        ({}, "running", 1),
        ({"beat_at": NOW - 16}, "gone", 0),
        ({"state": CrawlerState.STOPPED, "beat_at": NOW - 16}, "stopped", 0),
        ({"state": CrawlerState.CRASH_LOOPING}, "crash-looping", 0),
        ({"number": None}, "running", 0),  # started by hand: alive, but it fills no slot
    ],
)
def test_a_crawler_counts_as_up_only_with_a_slot_a_process_and_a_fresh_heartbeat(
    changes: dict[str, object], state: str, up: int
) -> None:
    samples = _samples(viewed(replace(CRAWLER, **changes)))  # type: ignore[arg-type]
    states = {name: value for name, value in samples.items() if name.startswith("trawl_crawlers{") and value}
    assert states == {f'trawl_crawlers{{state="{state}"}}': 1}
    assert samples["trawl_crawlers_up"] == up


def test_the_last_figures_of_a_crawler_that_is_gone_are_not_shown_as_todays() -> None:
    samples = _samples(viewed(replace(CRAWLER, beat_at=NOW - 100)))
    assert {name for name in samples if name.startswith("trawl_crawler_")} == {
        'trawl_crawler_restarts_total{crawler="forum_list/0"}',
    }


def test_a_service_without_any_crawler_is_zero_and_not_missing() -> None:
    samples = _samples(viewed(desired=2))
    assert samples["trawl_crawlers_up"] == 0
    assert samples['trawl_crawlers{state="running"}'] == 0


def test_a_hostile_name_cannot_add_lines() -> None:
    evil = 'x"} 1\n# TYPE collector_request_queue_size_total counter\ntrawl_redis_up 0\n'
    text = _text(viewed(replace(CRAWLER, spider=evil)))
    assert [line for line in text.splitlines() if line.startswith("trawl_redis_up")] == ["trawl_redis_up 1.0"]
    list(text_string_to_metric_families(text))


def test_the_reference_in_the_docs_is_the_table_of_the_code() -> None:
    assert reference() in (ROOT / "docs/monitoring.md").read_text(), (
        "put `python -c 'from monitoring.metrics.fleet import reference; print(reference())'` into docs/monitoring.md"
    )


def test_every_metric_that_an_alert_or_the_docs_name_exists() -> None:
    known = {spec.name for spec in METRICS} | {f"{spec.name}_bucket" for spec in METRICS if spec.kind == "histogram"}
    for file in ("docs/monitoring.md", "deploy/prometheus/alerts.yml"):
        named = set(re.findall(r"(?<!:)\b(?:collector|trawl)_[a-z_]*[a-z]\b(?!\w|\.|:)", (ROOT / file).read_text()))
        assert named - known == set(), file


def test_the_label_spider_names_what_a_service_runs() -> None:
    renamed = replace(VIEW.services[0], spider="bbs")
    text = _text(replace(VIEW, services=(renamed,)))
    pairs = set(re.findall(r'service="([^"]*)",spider="([^"]*)"', text))
    assert pairs == {("forum_list", "bbs")}, "of queues, crawlers, own stats"
