"""What is scheduled: the entries of celeryconfig.py, what people changed over them, and what cannot be."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from celery.schedules import crontab, schedule

from redis_components.errors import ConfigError
from tasks.beat.schedule import FLEETS_OWN, Schedule, ScheduledTask, changed, checker, defaults_of, effective
from workers.state.beats import StoredEntry, Unreadable, parse_span


def _seed(forums: list[str] | None = None, site: str | None = None) -> None:
    """What a task knows about its arguments."""


class _Task:
    __header__ = staticmethod(_seed)


TASKS: dict[str, Any] = {name: _Task() for name in ("trawl.seed_forums", "trawl.reconcile_fleet", "trawl.store_items")}
CHECK = checker(TASKS)
DEFAULTS = defaults_of(
    {
        "seed_forums": {"task": "trawl.seed_forums", "schedule": 5.0, "options": {"queue": "control"}},
        "reconcile_fleet": {"task": "trawl.reconcile_fleet", "schedule": 2.0},
        "store_items": {"task": "trawl.store_items", "schedule": 1.0},
    }
)


def read(**stored: StoredEntry | Unreadable) -> Schedule:
    return effective(DEFAULTS, stored, CHECK)


def test_without_changes_the_defaults_count() -> None:
    assert {name: entry.rhythm for name, entry in read().entries.items()} == {
        "seed_forums": "every 5 s",
        "reconcile_fleet": "every 2 s",
        "store_items": "every 1 s",
    }


def test_every_form_of_celerys_setting_is_read_and_one_that_makes_no_sense_is_left_out() -> None:
    found = defaults_of(
        {
            "a": {"task": "t", "schedule": timedelta(minutes=2), "args": (1,), "kwargs": {"x": 2}},
            "b": {"task": "t", "schedule": schedule(7.0)},
            "c": {"task": "t", "schedule": crontab(minute="*/5", hour=3, day_of_week="mon-fri")},
            "d": {"task": "t", "schedule": object()},
            "e": {"schedule": 5},
        }
    )
    assert [(one.every_s, one.cron, one.args) for one in found.entries.values()] == [
        (120.0, None, (1,)),
        (7.0, None, ()),
        (None, "*/5 3 * * mon-fri", ()),
    ]
    assert set(found.refused) == {"d", "e"}


def test_what_was_changed_counts_over_the_default_and_the_rest_stays() -> None:
    entry = read(seed_forums=StoredEntry(every_s=30.0, kwargs={"site": "demo"})).entries["seed_forums"]
    assert (entry.every_s, entry.kwargs, entry.options, entry.origin) == (30.0, {"site": "demo"}, {"queue": "control"}, "changed")
    assert read(seed_forums=StoredEntry(cron="0 3 * * *")).entries["seed_forums"].rhythm == "cron 0 3 * * *"
    assert not read(seed_forums=StoredEntry(enabled=False)).entries["seed_forums"].enabled


def test_an_entry_can_be_added() -> None:
    entry = read(nightly=StoredEntry(task="trawl.seed_forums", cron="0 3 * * *")).entries["nightly"]
    assert (entry.task, entry.origin) == ("trawl.seed_forums", "added")


@pytest.mark.parametrize(
    ("name", "stored", "said"),
    [
        ("x", Unreadable(reason="cannot be read (why)"), "cannot be read"),
        ("x", StoredEntry(every_s=5.0), "name its task"),
        ("x", StoredEntry(task="trawl.nix", every_s=5.0), "unknown task 'trawl.nix'; known are trawl.reconcile_fleet, "),
        ("x", StoredEntry(task="trawl.seed_forums"), "give its rhythm"),
        ("x", StoredEntry(task="trawl.seed_forums", every_s=5.0, cron="* * * * *"), "give its rhythm"),
        ("x", StoredEntry(task="trawl.seed_forums", every_s=0.5), "out of bounds: from 1 s"),
        ("x", StoredEntry(task="trawl.seed_forums", every_s=float("inf")), "out of bounds"),
        ("x", StoredEntry(task="trawl.seed_forums", cron="* * * *"), "needs five fields"),
        ("x", StoredEntry(task="trawl.seed_forums", cron="61 * * * *"), "is wrong: Invalid end range"),
        ("x", StoredEntry(task="trawl.seed_forums", cron="*/0 * * * *"), "is wrong"),
        ("x", StoredEntry(task="trawl.seed_forums", cron="*/ * * * *"), "is wrong"),
        ("x", StoredEntry(task="trawl.seed_forums", cron="1,,2 * * * *"), "is wrong"),
        ("x", StoredEntry(task="trawl.seed_forums", cron="0 0 31 2 *"), "never occurs"),
        ("x", StoredEntry(task="trawl.seed_forums", cron="0 0 30-31 feb *"), "never occurs"),
        ("x", StoredEntry(task="trawl.seed_forums", cron="0 0 31 4,6,9,11 mon"), "never occurs"),
        ("x", StoredEntry(task="trawl.seed_forums", every_s=5.0, kwargs={"nix": 1}), "does not take these arguments"),
        ("seed_forums", StoredEntry(args=[1, 2, 3]), "does not take these arguments"),
        ("reconcile_fleet", StoredEntry(enabled=False), "only its interval"),
        ("reconcile_fleet", StoredEntry(every_s=31.0), "from 1 s to 30 s"),
        ("store_items", StoredEntry(cron="* * * * *"), "from 1 s to 30 s"),
        ("store_items", StoredEntry(task="trawl.seed_forums"), "only its interval"),
    ],
)
def test_what_cannot_be_is_left_out_with_the_reason_and_the_rest_goes_on(
    name: str, stored: StoredEntry | Unreadable, said: str
) -> None:
    found = read(**{name: stored})
    assert said in found.refused[name]
    assert set(found.entries) == {"seed_forums", "reconcile_fleet", "store_items"}
    assert found.entries.get(name) == DEFAULTS.entries.get(name), "where it stood over a default, the default goes on"


def test_the_fleets_own_entries_are_in_celeryconfig_within_their_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    monkeypatch.setenv("TRAWL_REDIS_URL", "redis://127.0.0.1:1/0")
    defaults = defaults_of(importlib.import_module("celeryconfig").beat_schedule)
    assert not defaults.refused
    celery = importlib.import_module("tasks").app
    celery.loader.import_default_modules()
    check: Callable[[ScheduledTask], None] = checker(celery.tasks)
    for entry in defaults.entries.values():
        check(entry)
    assert set(FLEETS_OWN) <= set(defaults.entries)


def test_a_change_of_nothing_that_exists_names_the_fix() -> None:
    with pytest.raises(ConfigError, match="--task"):
        changed("x", None, StoredEntry(every_s=5.0))


@pytest.mark.parametrize(
    ("text", "seconds"), [("10s", 10), ("5m", 300), ("2h", 7200), ("1d", 86_400), ("1.5", 1.5), (" 3 s ", 3)]
)
def test_a_time_may_be_written_in_four_units(text: str, seconds: float) -> None:
    assert parse_span(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "-1s", "10 w", "1e3", "ten"])
def test_a_time_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="write 10s, 5m, 2h or 1d"):
        parse_span(text)
