"""When a job is over, and as what: pure decisions."""

from __future__ import annotations

import pytest

from fleet_operations.jobs.jobs import CANCELLED, MOST_ROUNDS, next_step
from workers.state.jobs import Job, JobFigures, JobState
from workers.state.registry import CrawlerRecord, CrawlerState, SlotView

JOB = Job(id="books.one", service="books", crawlers=2)
ENDING = Job(id="books.one", service="books", crawlers=2, state=JobState.ENDING, reason=CANCELLED)
HELD = SlotView(spider="books.one", number=0, token=7, owner="a@test")
EMPTY = SlotView(spider="books.one", number=1)
COMING = SlotView(spider="books.one", number=1, launching_on="a@test")
LEFT, NOTHING = JobFigures(left=3), JobFigures()


def given_up(number: int) -> SlotView:
    record = CrawlerRecord(spider="books.one", number=number, state=CrawlerState.REFUSED, error="unknown spider 'boks'")
    return SlotView(spider="books.one", number=number, record=record)


@pytest.mark.parametrize(
    ("job", "ends", "views", "done", "state", "reason"),
    [
        (JOB, {}, [EMPTY], NOTHING, JobState.RUNNING, ""),  # nothing was launched yet: an empty queue says nothing
        (JOB, {0: "finished"}, [HELD, EMPTY], NOTHING, JobState.RUNNING, ""),
        (JOB, {0: "finished"}, [COMING], NOTHING, JobState.RUNNING, ""),
        (JOB, {0: "finished"}, [EMPTY], NOTHING, JobState.FINISHED, "finished"),  # the other one never had room
        (JOB, {0: "finished"}, [EMPTY], LEFT, JobState.RUNNING, ""),
        (JOB, {1: "closespider_timeout", 0: "finished"}, [HELD], LEFT, JobState.ENDING, "closespider_timeout"),
        (JOB, {}, [given_up(0), HELD], LEFT, JobState.RUNNING, ""),
        (JOB, {}, [given_up(0), given_up(1)], LEFT, JobState.FAILED, "refused: unknown spider 'boks'"),
        (ENDING, {}, [HELD], LEFT, JobState.ENDING, CANCELLED),
        (ENDING, {}, [EMPTY], LEFT, JobState.CANCELLED, CANCELLED),
    ],
)
def test_a_job_is_over_when_it_is_proved(
    job: Job, ends: dict[int, str], views: list[SlotView], done: JobFigures, state: JobState, reason: str
) -> None:
    after = next_step(job, ends, views, done)
    assert (after.state, after.reason) == (state, reason)


def test_what_no_crawler_takes_out_of_the_queue_ends_the_job_in_words() -> None:
    tried = Job(id="books.one", service="books", rounds=MOST_ROUNDS)
    after = next_step(tried, {0: "finished"}, [EMPTY], LEFT)
    assert after.state is JobState.FAILED
    assert "fed from Redis" in after.reason
