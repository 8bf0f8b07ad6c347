"""Random deaths while the living forum of the demo is crawled; at the end everything is there, once.

`make chaos` does it for ten minutes. CHAOS_SECONDS is how long the deaths go on, CHAOS_SEED which ones; the seed is printed, and
the same seed gives the same plan of deaths (their moments and victims depend on the machine, too). With CHAOS_SECURE=1 the fleet
has TLS, a Redis user for each kind of process and signed messages; the short run has both.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from demo.compare import content_hash
from demo.forum.process import ForumProcess
from forums.state.keys import ForumFleetKeys
from forums.storage import Database, comments
from tests.support.broker_attack import body, raw, task
from tests.support.chaos import Chaos, choices
from tests.support.crawler_watch import CrawlerWatch
from tests.support.forum_fleet import BOARDS, SITE, ForumFleet
from tests.support.processes import LONGEST_PROGRESS, none_left, wait_until
from tests.support.secured_fleet import SecuredForumFleet
from tests.support.told_events import OUTPUT, RULES, StreamConsumer, Verdict, judge_events
from tests.support.watched_fleet import MARK
from workers.process.options import CrawlerOptions
from workers.state.registry import Slot

SHORT = "CHAOS_SECONDS" not in os.environ  # `make test`: the same deaths each time
SECONDS = float(os.environ.get("CHAOS_SECONDS", "6"))
SEED = int(os.environ.get("CHAOS_SEED", "0")) or (7 if SHORT else random.randrange(1, 1_000_000))
THREADS = 20 if SHORT else 60  # of each board
SETTLE_S = 90.0 + SECONDS / 4  # without a request that is finished
SECURED = {"plain": False, "secured": True}
WAYS = list(SECURED) if SHORT else ["secured" if os.environ.get("CHAOS_SECURE") else "plain"]
LIFE_PER_S = 5.0  # events in the forum
CHANGES = {"edit_rate": 0.1, "delete_rate": 0.1, "move_rate": 0.02}  # shares of them


FORGED = raw(task("trawl.scale_fleet", body((), {"forum_detail": 0, "forum_list": 0})))
"""Not signed: who can write to Redis wants nobody to crawl any more."""


def say(line: str) -> None:
    """For who watches (`pytest -s`), and for the report of a failure."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def test_the_same_seed_gives_the_same_plan() -> None:
    one, other, third = (choices(seed) for seed in (7, 7, 8))
    plans = [[next(plan) for _ in range(20)] for plan in (one, other, third)]
    assert plans[0] == plans[1] != plans[2]


FORKS = """
import os, sys
if os.fork() == 0:
    sys.stdin.read()
    os._exit(0)
print("forked", flush=True)
sys.stdin.read()
"""


def test_a_child_that_a_crawler_has_forked_is_not_taken_for_a_second_crawler_of_its_slot() -> None:
    options = CrawlerOptions(spider="toy", slot=Slot(spider="toy", number=0, token=1, owner="n"), node="n", parent=1, owner="x")
    command = [sys.executable, "-c", FORKS, "workers.crawler", *options.to_arguments()]
    watch = CrawlerWatch(mark=("TRAWL_TEST_FORKS", "1"))
    with subprocess.Popen(
        command, env={"TRAWL_TEST_FORKS": "1"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as crawler:
        assert crawler.stdout
        assert crawler.stdout.readline() == "forked\n"
        for _ in range(2):  # whichever of the two is looked at first
            assert set(watch.look()) == {crawler.pid}
        assert crawler.stdin
        crawler.stdin.close()


def comment_event(version: int, kind: str, text: str | None) -> dict[str, Any]:
    fixed = {"row": "comment", "item": "c1", "thread": "p1", "author": "ada", "created_at": "2026-01-02T03:04:05Z"}
    return {**fixed, "id": f"demo/comment/c1@{version}", "version": version, "type": kind, "text": text}


def hash_of(text: str) -> str:
    return content_hash(["c1", "p1", None, "ada", text, "2026-01-02T03:04:05Z"])


FIRST, SECOND = comment_event(1, "new", "first"), comment_event(2, "edited", "second")


@pytest.mark.parametrize(
    ("events", "faults"),
    [
        ([FIRST, SECOND], []),
        ([comment_event(1, "new", "second")], []),  # the first version was gone before it was read
        ([], ["untold"]),
        ([FIRST], ["untold"]),
        ([FIRST, SECOND, SECOND], ["twice"]),
        ([SECOND, FIRST], ["order", "untrue"]),
        ([FIRST, SECOND, comment_event(3, "edited", "second")], ["untrue"]),
        ([FIRST, comment_event(2, "edited", "another's"), comment_event(3, "edited", "second")], ["untrue"]),
        ([FIRST, SECOND, comment_event(3, "deleted", "second")], ["untrue", "untold"]),
        ([FIRST, comment_event(3, "edited", "second")], ["order"]),
    ],
)
def test_the_judge_of_events_finds_what_differs_from_the_record(events: list[dict[str, Any]], faults: list[str]) -> None:
    edited = {"c1": [(None, hash_of("first")), (1.0, hash_of("second"))]}
    nothing: dict[str, Any] = {"posts": {}, "comments": {}}
    truth = {"posts": {}, "comments": {"c1": hash_of("second")}, "edited": {**nothing, "comments": edited}, "deleted": nothing}
    found = [fault.partition(":")[0] for fault in judge_events(events, truth, {}).faults]
    assert sorted(set(found)) == sorted(faults)


def test_a_change_that_was_taken_back_before_anybody_read_it_is_no_fault() -> None:
    first, second = hash_of("first"), hash_of("second")
    edited = {"posts": {}, "comments": {"c1": [(None, first), (1.0, second), (2.0, first)]}}
    nothing: dict[str, Any] = {"posts": {}, "comments": {}}
    truth = {"posts": {}, "comments": {"c1": first}, "edited": edited, "deleted": nothing}
    assert judge_events([FIRST], truth, {}).faults == []
    assert judge_events([FIRST, SECOND], truth, {}).faults == ["untold: comments c1 ends with version 2 of 3"]
    assert judge_events([FIRST, SECOND, comment_event(3, "edited", "first")], truth, {}).faults == []


def wait_told(fleet: ForumFleet, forum: ForumProcess, consumer: StreamConsumer) -> Verdict:
    """The consumer's events against the forum's record, once they agree; where they do not, the last comparison."""
    with Database.from_url(fleet.database_url) as database:
        query = select(comments.c.id, comments.c.parent_id).where(comments.c.site == SITE)
        parents = {row[0]: row[1] for row in database.stream(query)}
    truth = forum.truth()
    verdicts: list[Verdict] = []

    def agree() -> bool:
        consumer.take()
        verdicts[:] = [judge_events(consumer.events, truth, parents)]
        return not verdicts[0].untold  # what else is wrong does not become right by waiting

    wait_until(agree, lambda: f"every event arrives; {verdicts[0].faults[:20]}\n{fleet.said()}", 90, every_s=1.0)
    return verdicts[0]


@pytest.mark.timeout(SECONDS + SETTLE_S * (1 + LONGEST_PROGRESS) + 120)
@pytest.mark.parametrize("way", WAYS)
def test_whatever_dies_the_whole_forum_is_stored_once_and_nobody_is_left(tmp_path: Path, way: str) -> None:
    say(f"\n{SECONDS:g} s of chaos, {way}, CHAOS_SEED={SEED}")
    kind = SecuredForumFleet if SECURED[way] else ForumFleet
    with (
        none_left((MARK, str(tmp_path))),
        ForumProcess(seed=SEED, forums=BOARDS, threads=THREADS, comments=5) as forum,
        kind(tmp_path, forum, rules=RULES) as fleet,
    ):
        consumer = StreamConsumer(fleet.client, ForumFleetKeys().event_stream(OUTPUT))
        forum.control(latency_ms=20, error_rate=0.02, throttle_rate=0.01, rate=LIFE_PER_S, **CHANGES)
        fleet.wait_whole_again()
        fleet.watch.forget()
        if isinstance(fleet, SecuredForumFleet):
            fleet.forge(FORGED)
        chaos = Chaos(fleet, choices(SEED), say)
        chaos.rage(SECONDS)
        fleet.wait_whole_again()
        coverage = fleet.settle(SETTLE_S)
        say(f"{dict(chaos.dealt)}\nstored {[(one.table, one.stored, one.expected, one.edited, one.deleted) for one in coverage]}")
        assert all(one.complete for one in coverage), ([one.unlike() for one in coverage], f"{fleet.given_up()} given up")
        verdict = wait_told(fleet, forum, consumer)
        say(f"told {verdict.told}; {verdict.unseen} versions were gone before anybody read them")
        assert verdict.faults == []
        assert max(fleet.watch.most.values()) == 1, fleet.watch.crowds
        wait_until(lambda: fleet.orphans() == [], lambda: f"no crawler is left over: {fleet.orphans()}\n{fleet.said()}")
        if isinstance(fleet, SecuredForumFleet):
            assert fleet.denied() == []
            (refused,) = fleet.refused_messages()
            assert refused.endswith(FORGED), "and nothing that the fleet has sent"
        assert fleet.stop() == []
