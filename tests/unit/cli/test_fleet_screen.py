"""The screen of `trawl status`: every state of a fleet, on a terminal of 100 columns."""

from __future__ import annotations

import io
import re
from dataclasses import replace

from rich.console import Console

from cli.views.fleet_screen import FleetScreen
from cli.views.fleet_tables import overview_json
from fleet_operations.overview import Overview, ServiceView
from forums.overview import ForumSites
from redis_components.admin.inspector import CrawlSnapshot
from redis_components.frontier.holds import Hold, HoldKind
from workers.state.beats import BeatView
from workers.state.holds import Breaker, BreakerState, Held
from workers.state.nodes import NodeRecord
from workers.state.registry import CrawlerRecord, CrawlerState, ErrorRecord
from workers.state.rolls import Roll, RollState, RollStep
from workers.state.services import Autoscaled, Memory, Policy

NOW = 1_800_000_000.0


def crawl(spider: str = "forum_list", **sizes: int) -> CrawlSnapshot:
    stats = {"downloader/response_count": "12345", "item_scraped_count": "77", "retry/count": "3"}
    return CrawlSnapshot(spider=spider, stats=stats, **sizes)


def service(desired: int = 1, alive: int = 1, **sizes: int) -> ServiceView:
    return ServiceView(name="forum_list", desired=desired, alive=alive, up=alive, pages_per_s=12.0, crawl=crawl(**sizes))


def crawler(state: CrawlerState = CrawlerState.RUNNING, *, age: float = 1.0, **fields: object) -> CrawlerRecord:
    record = {"spider": "forum_list", "number": 0, "pid": 4711, "node": "worker@host", "beat_at": NOW - age, "state": state}
    return CrawlerRecord(**{**record, **fields})  # type: ignore[arg-type]


LEADS = BeatView(leader="host:12", waiting=("host:13",), silent_s=0.4)


def fleet(
    *services: ServiceView,
    crawlers: tuple[CrawlerRecord, ...] = (),
    errors: tuple[ErrorRecord, ...] = (),
    beats: BeatView = LEADS,
) -> Overview:
    return Overview(now=NOW, services=services, crawlers=crawlers, errors=errors, beats=beats)


def drawn(view: Overview, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(FleetScreen(view))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_service_is_one_line_with_its_crawlers_queues_and_figures() -> None:
    text = drawn(fleet(service(2, 2, start_tasks=5, ready=1200, leased=30, leased_tasks=4, dead=1, items=9, bad_items=2)))
    line = next(line for line in text.splitlines() if line.startswith("forum_list"))
    assert line.split() == ["forum_list", "2/2", "5", "1,200", "34", "1", "12,345", "12", "77", "9", "2"]


def test_a_crawler_that_runs_is_shown_with_its_figures() -> None:
    record = crawler(pages_per_s=45.4, in_flight=8, rss_bytes=100 * 2**20, restarts=2, last_exit="hung")
    line = next(line for line in drawn(fleet(service(), crawlers=(record,))).splitlines() if line.startswith("forum_list/0"))
    assert line.split() == ["forum_list/0", "running", "4711", "45", "8", "100", "MiB", "1.0", "s", "2", "worker@host", "hung"]


def test_a_crawler_that_says_it_runs_but_was_not_heard_for_long_is_gone() -> None:
    text = drawn(fleet(service(1, 0), crawlers=(crawler(age=60),)))
    line = next(line for line in text.splitlines() if line.startswith("forum_list/0"))
    assert "gone" in line
    assert "4711" not in line, "its pid may be another process's by now"


def test_every_state_of_a_crawler_can_be_shown() -> None:
    for state in CrawlerState:
        assert str(state) in drawn(fleet(service(), crawlers=(crawler(state),)))


def test_without_a_crawler_the_screen_says_how_to_start_one() -> None:
    text = drawn(fleet(service(1, 0)))
    assert "No crawler has reported." in text
    assert "trawl up" in text


def test_a_service_that_is_short_of_crawlers_is_named() -> None:
    assert "forum_list has 1 of 3 crawlers" in drawn(fleet(service(3, 1), crawlers=(crawler(),)))


def test_nodes_are_shown_with_their_room_and_its_lack_in_one_sentence() -> None:
    node = NodeRecord(name="celery@host", services=("forum_list",), capacity=4, taken=4, beat_at=NOW - 1, started_at=NOW - 3600)
    gone = replace(node, name="celery@other", beat_at=NOW - 20)
    lacking = {"forum_list": "5 wanted, no room for 1: the nodes that serve it offer 4, all taken"}
    text = drawn(replace(fleet(service(5, 4)), nodes=(node, gone), shortages=lacking))
    lines = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.startswith("celery@")}
    assert lines["celery@host"][:2] == ["up", "4/4"]
    assert lines["celery@other"][:2] == ["gone", "4/4"]
    assert "forum_list: 5 wanted, no room for 1" in text


def test_a_roll_and_the_services_that_size_themselves_have_a_line_each() -> None:
    step = RollStep(spider="forum_list", number=0, token=1, pid=2, restarts=0)
    roll = Roll(id="r", services=("forum_list",), waiting=(step,), reason="replaces forum_list/1")
    sized = {"forum_list": Autoscaled(policy=Policy(min=1, max=8), memory=Memory(why="2 are enough"))}
    text = drawn(replace(fleet(service()), roll=roll, autoscaled=sized))
    assert "roll rolling: 0 of 1 replaced, replaces forum_list/1" in text
    assert "forum_list sizes itself, 1 to 8: 2 are enough" in text
    assert "roll" not in drawn(replace(fleet(service()), roll=replace(roll, state=RollState.DONE)))


PAUSED = Hold(word=HoldKind.PAUSE, at=NOW - 90, by="ops@host", reason="they asked us to")
STOPPED = Hold(word=HoldKind.STOP, at=NOW - 7200, by="ops@host")


def test_what_is_held_comes_before_the_services_with_since_when_by_whom_and_why() -> None:
    held = (Held(hold=STOPPED), Held(hold=PAUSED, service="forum_list", site="demo"))
    lines = drawn(replace(fleet(service(parked=3, parked_tasks=4)), held=held)).splitlines()
    assert lines[5].split() == ["the", "fleet", "stopped", "2", "h", "ops@host", "-"]
    assert re.split(r"  +", lines[6].strip()) == ["site demo in forum_list", "paused", "90 s", "ops@host", "they asked us to"]
    assert next(line for line in lines if line.startswith("forum_list")).split()[-1] == "7", "what is parked has a column then"


def test_a_broken_site_is_a_problem_and_shown_with_its_reason_and_what_it_answered() -> None:
    broken = Breaker(
        state=BreakerState.OPEN,
        cause="login",
        reason="a login page",
        since=NOW - 90,
        url="http://forum.test/1",
        excerpt="Who are you?",
        next_probe_at=NOW + 60,
        probes=2,
        last_probe="HTTP 403",
    )
    sites = ForumSites(breakers={"demo": broken})
    held = Held(hold=Hold(word=HoldKind.PAUSE, at=NOW - 90, by="breaker", reason="a login page"), site="demo", by_breaker=True)
    lines = drawn(replace(fleet(service()), sites=sites, held=(held,)), width=160).splitlines()
    assert lines[2].startswith("✗ site demo is not crawled: a login page → ")
    row = next(at for at, line in enumerate(lines) if line.startswith("demo  broken"))
    assert re.split(r"  +", lines[row].strip())[:5] == ["demo", "broken", "90 s", "in 60 s", "a login page"]
    said = " ".join(" ".join(lines).split())
    assert "http://forum.test/1 · “Who are you?”" in said
    assert not [line for line in lines if "paused" in line], "once is enough"


def test_a_stopped_fleet_is_not_told_to_start() -> None:
    assert "trawl up" not in drawn(replace(fleet(service(2, 0)), held=(Held(hold=STOPPED),)))
    assert "has 0 of 2" not in drawn(replace(fleet(service(2, 0)), held=(Held(hold=STOPPED, service="forum_list"),)))


def test_a_fleet_that_is_whole_has_no_hint() -> None:
    text = drawn(fleet(service(), crawlers=(crawler(),)))
    assert "trawl up" not in text
    assert "of 1 crawlers" not in text


def test_an_error_of_several_lines_takes_one_entry_and_brackets_are_no_markup() -> None:
    text = drawn(fleet(service(), errors=(ErrorRecord(at=NOW - 5, where="forum_list/0", what="first\n  [red]second[/red]"),)))
    assert "5.0 s ago" in text
    assert "first [red]second[/red]" in text


def test_a_slot_that_was_given_up_says_why() -> None:
    note, error = "crashed (exit code 1); 6 failures in a row", "RuntimeError: no key"
    text = drawn(fleet(service(1, 0), crawlers=(crawler(CrawlerState.CRASH_LOOPING, note=note, error=error),)))
    assert "forum_list/0 is crash-looping: crashed (exit code 1); 6 failures in a row" in text
    assert text.count("RuntimeError: no key") == 1
    assert "trawl resume forum_list" in text


def test_a_hundred_columns_are_enough_for_large_numbers() -> None:
    text = drawn(fleet(service(100, 100, start_tasks=99_999, ready=999_999, leased=9_999), crawlers=(crawler(),)))
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "…" not in text


def test_json_has_every_figure_under_a_name_of_its_own() -> None:
    view = fleet(service(2, 1, ready=7), crawlers=(crawler(age=2.0),), errors=(ErrorRecord(at=NOW, where="w", what="x"),))
    assert overview_json(replace(view, sites=ForumSites())) == {
        "at": "2027-01-15T08:00:00Z",
        "problems": [
            {
                "what": "forum_list has 1 of 2 crawlers",
                "fix": "they start within seconds; if not, see trawl history forum_list",
                "grave": True,
            }
        ],
        "unreadable": {},
        "held": [],
        "sites": {"breakers": [], "wrong_files": {}, "limits": []},
        "beat": {"leader": "host:12", "waiting": ["host:13"], "silent_s": 0.4, "stalled": False},
        "services": [
            {
                "service": "forum_list",
                "desired": 2,
                "alive": 1,
                "state": None,
                "fault": None,
                "start_tasks": 0,
                "ready": 7,
                "leased": 0,
                "leased_tasks": 0,
                "parked": 0,
                "parked_tasks": 0,
                "overflow": 0,
                "backlog": 0,
                "thread_records": 0,
                "dead": 0,
                "items_waiting": 0,
                "bad_items": 0,
                "items_counted_for": None,
                "item_bytes": 0,
                "item_consumer": None,
                "items_limit": None,
                "items_limit_bytes": None,
                "items_backed_up": False,
                "pages": 12345,
                "pages_per_s": 12.0,
                "items": 77,
                "retried": 3,
                "reclaimed": 0,
            }
        ],
        "crawlers": [
            {
                "crawler": "forum_list/0",
                "alive": True,
                "spider": "forum_list",
                "number": 0,
                "pid": 4711,
                "node": "worker@host",
                "state": "running",
                "token": None,
                "pages": 0,
                "items": 0,
                "answered": 0,
                "raised": 0,
                "pages_per_s": 0.0,
                "in_flight": 0,
                "oldest_s": 0.0,
                "oldest": "",
                "rss_bytes": 0,
                "lag_s": 0.0,
                "restarts": 0,
                "last_exit": None,
                "last_exit_at": None,
                "last_exit_kind": None,
                "quick_ends": 0,
                "quick_failures": 0,
                "reload": None,
                "note": None,
                "error": None,
                "log": None,
                "started_at": None,
                "heartbeat_age_s": 2.0,
            }
        ],
        "nodes": [],
        "no_room": {},
        "roll": None,
        "autoscaled": [],
        "another_database": False,
        "dead_messages": None,
        "redis": [],
        "foreign": [],
        "errors": [{"at": "2027-01-15T08:00:00Z", "where": "w", "what": "x", "times": 1}],
    }


def test_it_says_which_beat_leads_or_since_when_none_does() -> None:
    assert "beat  host:12 leads, one more waits" in drawn(fleet(service()))
    nobody = BeatView(leader=None, waiting=(), silent_s=754.2)
    assert "beat: none leads, nothing was sent for 754 s: nothing is seeded, launched or stored" in drawn(
        fleet(service(), beats=nobody), width=200
    )


def test_where_every_node_is_being_drained_nobody_is_told_to_start_the_fleet() -> None:
    node = NodeRecord(name="a@host", services=("forum_list",), capacity=4, beat_at=NOW - 1, draining=True)
    text = drawn(replace(fleet(service(alive=0)), nodes=(node,)))
    assert "every node is being drained; start another one, or run trawl resume --node NAME" in " ".join(text.split())
    assert "start the fleet" not in text
    assert "start the fleet" in drawn(replace(fleet(service(alive=0)), nodes=(replace(node, beat_at=NOW - 20),))), "it is gone"


def test_a_crawler_that_missed_heartbeats_is_silent_for_so_long_on_any_width() -> None:
    for width in (40, 100):
        assert "running, silent 6.0 s" in drawn(fleet(service(), crawlers=(crawler(age=6.0),)), width)
        assert "silent" not in drawn(fleet(service(), crawlers=(crawler(age=3.0),)), width)
        assert "silent" not in drawn(fleet(service(), crawlers=(crawler(CrawlerState.BACKING_OFF, age=6.0),)), width)
    assert "gone" in drawn(fleet(service(), crawlers=(crawler(age=16.0),)))
