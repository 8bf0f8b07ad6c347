"""Runs and scheduled jobs by Redis's clock, which the test sets: when they begin, what is made up, and when one will be late.

Beat, its tasks and the steps of runs are those of a fleet, in this process; the jobs are ended by the test.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import cache
from pathlib import Path

import pytest

from fleet_operations.jobs import runs
from fleet_operations.jobs.run_steps import advance
from fleet_operations.overview import Overview, problems
from redis_components.keys import CrawlRecords
from tasks.app import app
from tasks.beat.leader import LeaderScheduler
from tests.support.faked_clock import RedisWithClock, needs_compiler
from workers.state.group_runs import GroupRun, GroupRuns, RunState, Verdict
from workers.state.jobs import FINISHED, Job, JobFigures, Jobs, JobState
from workers.state.keys import FleetKeys
from workers.state.reports import Note

pytestmark = needs_compiler

HOUR_S = 3600.0
SPIDERS = 'import scrapy\nfor name in "abcdef":\n    globals()[name] = type(name, (scrapy.Spider,), {"name": name})\n'
GROUP = '\n[groups.{name}]\nspiders = ["?"]\nat_once = 2\n{lines}\n'
NOT_MADE_UP = '[schedule.single]\ntask = "trawl.crawl"\nargs = ["a"]\ncron = "30 2 * * *"\nkwargs = {overlap = "skip"}\n'
SPIDERS_OF = cache(runs.project_spiders)
"""The project is the same in all of these tests, and is imported once."""


class Night:
    """A fleet whose beat looks when the test asks, at the times that it sets."""

    def __init__(self, server: RedisWithClock, folder: Path) -> None:
        self.server, self.client, self.folder = server, server.client(), folder
        self.runs, self.jobs = GroupRuns(self.client), Jobs(self.client)
        self.beat = LeaderScheduler(app=app)

    def declare(self, text: str = "", **groups: str) -> None:
        tables = "".join(GROUP.format(name=name, lines=lines) for name, lines in groups.items())
        (self.folder / "trawl.toml").write_text(text + tables)

    def at(self, moment: str) -> list[str]:
        """Set the clock (ISO, with its offset), let beat look, and return the runs that are new, as `group +minutes`."""
        asked = datetime.fromisoformat(moment)
        known = set(self.runs.all())
        self.server.set_to(asked.timestamp() + 1)
        self.beat._read_at = 0.0
        self.beat.tick()
        return sorted(run.group for name, run in self.runs.all().items() if name not in known)

    def step(self) -> None:
        advance(self.client)

    def later(self, hours: float) -> None:
        """Let so many hours pass, and take a step."""
        self.server.set_to(float(self.client.time()[0]) + hours * HOUR_S)
        self.step()

    def newest(self) -> GroupRun:
        return self.runs.newest()[0]

    def crawling(self) -> dict[str, Job]:
        return {job.service: job for job in self.jobs.open().values()}

    def crawled(self, spider: str, **figures: int) -> None:
        """Note what the crawlers of a member have done."""
        job = self.crawling()[spider]
        assert self.jobs.swap(replace(job, figures=JobFigures(**figures)))

    def end(self, *spiders: str) -> None:
        """End jobs, as when their crawlers are gone."""
        for spider, job in self.crawling().items():
            if spider in spiders or not spiders:
                state = JobState.CANCELLED if job.state is JobState.ENDING else JobState.FINISHED
                assert self.jobs.swap(replace(job, state=state, reason=FINISHED, ended_at=float(self.client.time()[0])))
        self.step()

    def end_runs(self) -> None:
        while not all(run.state.ended for run in self.runs.newest()):
            self.step()
            self.end()

    def notes(self) -> list[str]:
        found = self.client.xrange(FleetKeys().notes())
        return [Note.from_json(fields[b"note"]).said for _, fields in found]  # type: ignore[union-attr]

    def fix(self) -> str:
        """Return what `trawl status` has on a run that will be late; "" where it has nothing."""
        view = Overview(now=float(self.client.time()[0]), runs=tuple(self.runs.newest()))
        return next((one.fix for one in problems(view) if "will miss its deadline" in one.what), "")


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Night]:
    (tmp_path / "own_spiders.py").write_text(SPIDERS)
    (tmp_path / "own_settings.py").write_text('SPIDER_MODULES = ["own_spiders"]\n')
    (tmp_path / "trawl.toml").touch()
    with RedisWithClock(tmp_path) as server:
        for name, value in {
            "TRAWL_REDIS_URL": server.url,
            "TRAWL_CONFIG": str(tmp_path / "trawl.toml"),
            "TRAWL_DATA_DIR": str(tmp_path / "data"),
            "SCRAPY_SETTINGS_MODULE": "own_settings",
            "PYTHONPATH": str(tmp_path),
        }.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(runs, "project_spiders", SPIDERS_OF)
        monkeypatch.setitem(app.conf, "beat_schedule", {})
        monkeypatch.setitem(app.conf, "task_always_eager", True)  # what beat sends runs at once
        app.loader.import_default_modules()
        found = Night(server, tmp_path)
        yield found
        found.beat.close()


def test_a_run_begins_by_the_clock_of_its_zone_also_when_that_is_set_forward_and_back(night: Night) -> None:
    night.declare(night='cron = "30 2 * * *"\ntimezone = "Europe/Berlin"\ndeadline = "06:00"', utc='cron = "30 2 * * *"')
    assert night.at("2026-03-28T12:00+01:00") == []
    assert night.at("2026-03-29T01:59+01:00") == []
    assert night.at("2026-03-29T03:29+02:00") == [], "02:30 is left out of this night: half an hour after 03:00 is its time"
    assert night.at("2026-03-29T03:30+02:00") == ["night"]
    deadline = night.newest().deadline_at
    assert deadline == datetime.fromisoformat("2026-03-29T06:00+02:00").timestamp(), (
        "the clock's, not three and a half hours later"
    )
    night.end_runs()
    assert night.at("2026-03-29T04:29+02:00") == []
    assert night.at("2026-03-29T04:30+02:00") == ["utc"]
    night.end_runs()
    assert night.at("2026-10-24T12:00+02:00") == ["night", "utc"], "the last of those that were missed, once"
    night.end_runs()
    assert night.at("2026-10-25T02:29+02:00") == []
    assert night.at("2026-10-25T02:30+02:00") == ["night"]
    assert night.newest().deadline_at == datetime.fromisoformat("2026-10-25T06:00+01:00").timestamp()
    night.end_runs()
    assert night.at("2026-10-25T02:29+01:00") == []
    assert night.at("2026-10-25T02:45+01:00") == [], "02:30 is there twice, and its run once"
    assert night.at("2026-10-25T03:30+01:00") == ["utc"]
    night.end_runs()
    assert night.at("2026-10-26T02:30+01:00") == ["night"]


def test_after_an_outage_one_run_is_made_up_unless_the_group_wants_none(night: Night) -> None:
    night.declare(made_up='cron = "0 3 * * *"', left_out='cron = "0 3 * * *"\ncatch_up = false')
    assert night.at("2026-05-01T12:00+00:00") == []
    assert night.at("2026-05-05T09:00+00:00") == ["made_up"], "four nights without a beat, and one run"
    night.end_runs()
    assert night.at("2026-05-05T09:10+00:00") == []
    assert night.at("2026-05-06T03:02+00:00") == ["left_out", "made_up"], "a beat that is back within minutes has missed nothing"


@pytest.mark.parametrize("overlap", ["skip", "queue", "replace"])
def test_a_run_that_is_due_while_the_last_one_goes_on(night: Night, overlap: str) -> None:
    night.declare(night=f'cron = "0 3 * * *"\noverlap = "{overlap}"\ndeadline = "20h"')
    assert night.at("2026-05-01T12:00+00:00") == []
    assert night.at("2026-05-02T03:00+00:00") == ["night"]
    first = night.newest()
    assert night.runs.swap(replace(first, deadline_at=None))
    night.step()
    new = night.at("2026-05-03T03:00+00:00")
    night.step()
    if overlap == "skip":
        assert (new, night.newest().id) == ([], first.id)
        return
    assert new == ["night"]
    states = [RunState.QUEUED, RunState.ENDING if overlap == "replace" else RunState.RUNNING]
    assert [run.state for run in night.runs.newest()] == states
    night.later(5)
    while not night.runs.all()[first.id].state.ended:
        night.end()
    night.step()
    second = night.newest()
    assert second.state is RunState.RUNNING
    assert second.deadline_at == pytest.approx(datetime.fromisoformat("2026-05-04T04:00+00:00").timestamp(), abs=60), (
        "20 h from its begin at 08:00, not from the time at which it was due"
    )


def test_a_scheduled_job_is_left_out_while_the_last_one_goes_on(night: Night) -> None:
    night.declare(NOT_MADE_UP)
    night.at("2026-05-01T12:00+00:00")
    night.at("2026-05-02T02:30+00:00")
    (first,) = night.jobs.all()
    night.at("2026-05-03T02:30+00:00")
    assert list(night.jobs.all()) == [first]
    night.end()
    night.at("2026-05-04T02:30+00:00")
    assert len(night.jobs.all()) == 2


def test_a_deadline_that_will_be_missed_is_reported_when_the_pace_shows_it(night: Night) -> None:
    night.declare(night='cron = "0 3 * * *"\ndeadline = "06:00"')
    night.at("2026-05-01T12:00+00:00")
    night.at("2026-05-02T03:00+00:00")
    night.step()
    assert set(night.crawling()) == {"a", "b"}
    night.later(0.5)
    assert night.newest().late is None, "nothing is over, and nothing known of the pace: half an hour each would do"
    night.later(0.75)
    assert night.newest().late is not None, "75 minutes each, and four more in two rows: it is clear 105 minutes before"
    assert "at_once" in night.fix()
    assert [one for one in night.notes() if "will miss its deadline" in one]
    night.end("a", "b")
    assert night.crawling().keys() == {"c", "d"}
    night.later(0.05)
    night.end("c", "d")
    assert night.newest().late is None, "the other members are quick"
    night.end_runs()
    assert night.newest().counts == {Verdict.NOTHING_DUE: 6}

    # the next night it is known from the start, by the last one
    runs = night.runs
    assert runs.swap(replace(night.newest(), seconds=6 * 2 * HOUR_S))
    night.at("2026-05-03T03:00+00:00")
    night.step()
    late = night.newest().late
    assert late == pytest.approx(datetime.fromisoformat("2026-05-03T09:00+00:00").timestamp(), abs=120), (
        "two hours each, in three rows"
    )
    night.later(3.1)
    night.end()
    over = night.newest()
    assert over.state is RunState.FINISHED
    assert over.counts == {Verdict.DEADLINE: 6}


def test_the_member_that_will_be_late_is_named_and_what_does_not_help_it(night: Night) -> None:
    night.declare(night='cron = "0 3 * * *"\ndeadline = "06:00"')
    night.at("2026-05-01T12:00+00:00")
    night.at("2026-05-02T03:00+00:00")
    night.step()
    night.end("a", "c", "d", "e", "f")
    night.later(0.5)
    night.end("c", "d", "e", "f")
    night.crawled("b", pages=600, left=1000)
    night.later(0.5)
    assert night.newest().late is None, "1,000 more pages in 100 minutes"
    night.crawled("b", pages=600, left=1500)
    night.step()
    assert night.newest().late_by == "b has 1,500 requests left"
    assert "a higher at_once would not help, more crawlers for it may" in night.fix()
    keys = CrawlRecords(night.client).keys_of(night.crawling()["b"].id)
    night.client.zadd(keys.lanes(), {"\1later": 0})  # requests with a time: no limit
    night.step()
    assert night.newest().late_by == "b has 1,500 requests left"
    night.client.zadd(keys.lanes(), {"quotas.ops": 0})
    assert night.runs.swap(replace(night.newest(), quota="ops"))
    night.step()
    assert night.fix().startswith("b has 1,500 requests left at the pace of the quota ops: a higher at_once would not help")
    assert "a higher per_minute may" in night.fix()
    night.client.zadd(keys.lanes(), {"example.org": 0})
    night.step()
    assert night.newest().late_by == "b has 1,500 requests left at the pace of the limit of its site"
    assert "a higher at_once would not help, neither would more crawlers" in night.fix()
    assert night.newest().late == pytest.approx((datetime.fromisoformat("2026-05-02T06:30+00:00")).timestamp(), abs=180)
    night.crawled("b", pages=1500, left=600)
    night.step()
    assert (night.newest().late, night.newest().late_by, night.fix()) == (None, "", "")
