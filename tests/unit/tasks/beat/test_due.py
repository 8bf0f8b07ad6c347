"""When a scheduled task is due: rhythms are kept, rounds are neither repeated nor skipped, clocks may jump."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from tasks.beat.schedule import MIN_EXPIRES_S, ScheduledTask, expires_s, needs_anchor, next_due
from workers.state.beats import Round, RoundState

EVERY = ScheduledTask(name="seed", task="t", every_s=10.0)
CRON = ScheduledTask(name="nightly", task="t", cron="0 3 * * *")
NOW = 1_000_000.0


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def sent(due: float) -> Round:
    return Round(due=due, sent_at=due, state=RoundState.SENT)


def test_an_interval_without_a_round_is_due_at_once() -> None:
    assert next_due(EVERY, None, NOW) == NOW


def test_an_interval_keeps_its_rhythm_although_each_round_is_a_little_late() -> None:
    assert next_due(EVERY, sent(NOW - 10.3), NOW) == NOW - 10.3 + 10
    assert next_due(EVERY, sent(NOW - 2), NOW) == NOW + 8


def test_rounds_that_were_missed_are_made_up_by_one() -> None:
    due = next_due(EVERY, sent(NOW - 600), NOW)
    assert due == NOW
    assert next_due(EVERY, sent(due), NOW) == NOW + 10


def test_a_round_that_nobody_confirmed_is_due_again_as_the_same_round_until_the_next_one() -> None:
    unsure = Round(due=NOW - 4, sent_at=None, state=RoundState.DUE)
    assert next_due(EVERY, unsure, NOW) == NOW - 4
    assert next_due(EVERY, unsure, NOW + 60) == NOW + 60
    night = Round(due=at("2026-01-02 03:00"), sent_at=None, state=RoundState.DUE)
    assert next_due(CRON, night, at("2026-01-02 03:20")) == at("2026-01-02 03:00")


def test_a_clock_that_was_set_back_stops_no_interval() -> None:
    assert next_due(EVERY, sent(NOW + 3600), NOW) == NOW
    assert next_due(EVERY, Round(due=NOW + 3600, sent_at=None, state=RoundState.DUE), NOW) == NOW


def test_a_clock_that_jumps_ahead_costs_one_round() -> None:
    later = NOW + 86_400
    due = next_due(EVERY, sent(NOW), later)
    assert (due, next_due(EVERY, sent(due), later)) == (later, later + 10)


def test_cron_is_due_at_the_next_time_that_its_fields_name() -> None:
    assert next_due(CRON, sent(at("2026-01-01 03:00")), at("2026-01-01 17:00")) == at("2026-01-02 03:00")
    working = ScheduledTask(name="w", task="t", cron="*/20 9-17 * * mon-fri")
    assert next_due(working, sent(at("2026-01-02 17:40")), at("2026-01-03 00:00")) == at("2026-01-05 09:00")
    leap = ScheduledTask(name="l", task="t", cron="30 2 29 2 *")
    assert next_due(leap, sent(at("2026-01-01 00:00")), at("2026-01-01 00:00")) == at("2028-02-29 02:30")


def test_cron_that_was_due_while_nobody_led_is_sent_once_late() -> None:
    now = at("2026-01-05 12:00")
    assert next_due(CRON, sent(at("2026-01-04 03:00")), now) == at("2026-01-05 03:00")
    due = next_due(CRON, sent(at("2026-01-01 03:00")), now)
    assert due == now
    assert next_due(CRON, sent(due), now) == at("2026-01-06 03:00")


def test_cron_counts_from_its_change_so_that_changing_or_enabling_starts_nothing() -> None:
    changed = ScheduledTask(name="n", task="t", cron="0 3 * * *", changed_at=at("2026-01-05 12:00"))
    for run in (None, sent(at("2026-01-01 03:00"))):
        assert next_due(changed, run, at("2026-01-05 12:01")) == at("2026-01-06 03:00")


def test_cron_without_any_round_needs_a_time_to_count_from() -> None:
    now = at("2026-01-05 02:59:59")
    assert needs_anchor(CRON, None, now)
    anchor = Round(due=now, sent_at=None, state=RoundState.SEEN)
    assert not needs_anchor(CRON, anchor, now)
    assert next_due(CRON, anchor, now + 2) == at("2026-01-05 03:00")
    assert needs_anchor(CRON, sent(now + 3600), now)  # the clock was set back
    assert not needs_anchor(EVERY, None, now)


def test_a_message_is_worth_something_until_the_next_round() -> None:
    assert expires_s(ScheduledTask(name="e", task="t", every_s=300.0), NOW) == 300
    assert expires_s(CRON, at("2026-01-01 03:00")) == 86_400
    assert expires_s(EVERY, NOW) == 10
    assert expires_s(ScheduledTask(name="e", task="t", every_s=1.0), NOW) == MIN_EXPIRES_S


def berlin(cron: str, last: str, now: str) -> str:
    entry = ScheduledTask(name="n", task="t", cron=cron, timezone="Europe/Berlin")
    due = next_due(entry, sent(datetime.fromisoformat(last).timestamp()), datetime.fromisoformat(now).timestamp())
    return datetime.fromtimestamp(due, UTC).astimezone(ZoneInfo("Europe/Berlin")).isoformat(timespec="minutes")


def test_cron_goes_by_the_clock_of_its_time_zone_also_where_that_is_set() -> None:
    assert berlin("0 3 * * *", "2026-03-28T03:00+01:00", "2026-03-28T12:00+01:00") == "2026-03-29T03:00+02:00"
    # forward at 02:00: 02:30 is left out, and its round is half an hour after the next hour began
    assert berlin("30 2 * * *", "2026-03-28T02:30+01:00", "2026-03-28T12:00+01:00") == "2026-03-29T03:30+02:00"
    assert berlin("30 2 * * *", "2026-03-29T03:30+02:00", "2026-03-29T04:00+02:00") == "2026-03-30T02:30+02:00"
    # back at 03:00: 02:30 is there twice, and its round once
    assert berlin("30 2 * * *", "2026-10-24T02:30+02:00", "2026-10-24T12:00+02:00") == "2026-10-25T02:30+02:00"
    assert berlin("30 2 * * *", "2026-10-25T02:30+02:00", "2026-10-25T02:10+01:00") == "2026-10-26T02:30+01:00"
    assert berlin("30 2 * * *", "2026-10-25T02:10+01:00", "2026-10-25T02:20+01:00") == "2026-10-26T02:30+01:00"
    # each half hour goes on in the hour that is there twice
    assert berlin("*/30 * * * *", "2026-10-25T02:30+02:00", "2026-10-25T02:59+02:00") == "2026-10-25T02:00+01:00"


def test_a_round_that_was_missed_is_left_out_where_the_entry_makes_up_none() -> None:
    entry = replace(CRON, catch_up=False)
    assert next_due(entry, sent(at("2026-01-01 03:00")), at("2026-01-02 09:00")) == at("2026-01-03 03:00")
    assert next_due(entry, sent(at("2026-01-01 03:00")), at("2026-01-02 03:01")) == at("2026-01-02 03:00"), "a beat restarted"
    assert next_due(CRON, sent(at("2026-01-01 03:00")), at("2026-01-02 09:00")) == at("2026-01-02 03:00")
