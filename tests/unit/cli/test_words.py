"""What people type on `trawl`'s command line, and what they read in its tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cli.commands.scale import parse_sizes, sentence
from cli.names import parse_since
from cli.processes import FlowerAccess
from cli.views.output import duration
from redis_components.errors import ConfigError

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_sizes_may_be_separate_words_or_joined_by_commas() -> None:
    assert parse_sizes(["forum_list=1", "forum_detail=4,other=0"]) == {"forum_list": 1, "forum_detail": 4, "other": 0}


@pytest.mark.parametrize(
    "word", ["forum_list", "forum_list=", "=1", "forum_list=-1", "forum_list=1.5", "forum_list=x", "", "a=²", "a=" + "9" * 5000]
)
def test_a_size_of_another_form_is_refused_with_an_example(word: str) -> None:
    with pytest.raises(ConfigError, match="write for example forum_detail=2"):
        parse_sizes([word])


def test_a_service_that_is_named_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="named twice"):
        parse_sizes(["forum_list=1", "forum_list=2"])


def test_a_number_that_must_be_a_typing_error_is_refused() -> None:
    with pytest.raises(ConfigError, match="from 0 to 1000"):
        parse_sizes(["forum_list=100000"])


def test_sizes_are_written_as_they_are_typed() -> None:
    assert sentence({"forum_list": 1, "forum_detail": 2}) == "forum_detail=2, forum_list=1"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("90s", NOON - timedelta(seconds=90)),
        ("30m", NOON - timedelta(minutes=30)),
        ("2h", NOON - timedelta(hours=2)),
        ("7d", NOON - timedelta(days=7)),
        ("2026-01-30", datetime(2026, 1, 30, tzinfo=UTC)),
        ("2026-01-30T08:30:00", datetime(2026, 1, 30, 8, 30, tzinfo=UTC)),
        ("2026-01-30T08:30:00Z", datetime(2026, 1, 30, 8, 30, tzinfo=UTC)),
        ("2026-01-30T08:30:00+02:00", datetime(2026, 1, 30, 6, 30, tzinfo=UTC)),
    ],
)
def test_since_is_an_age_or_a_time_which_is_utc_unless_it_says_otherwise(text: str, moment: datetime) -> None:
    assert parse_since(text, now=NOON) == moment


@pytest.mark.parametrize("text", ["yesterday", "2", "h", "2x", "31.1.2026", "-2h", "999999999d", ""])
def test_since_of_another_form_is_refused_with_the_forms_there_are(text: str) -> None:
    with pytest.raises(ConfigError, match="write 2h"):
        parse_since(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0.0 s"), (0.44, "0.4 s"), (12.3, "12 s"), (119, "119 s"), (300, "5 min"), (7300, "2 h"), (200_000, "2 d")],
)
def test_a_duration_is_as_exact_as_an_eye_needs(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_flower_gets_a_new_password_each_time_unless_one_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRAWL_FLOWER_AUTH", raising=False)
    one, two = FlowerAccess.on(5555), FlowerAccess.on(5555)
    assert one.password != two.password
    assert len(one.password) >= 12
    monkeypatch.setenv("TRAWL_FLOWER_AUTH", "me:se:cret")
    given = FlowerAccess.on(5555)
    assert (given.user, given.password) == ("me", "se:cret")


@pytest.mark.parametrize("given", ["me", "me:", ":secret", "me:a,b"])
def test_a_flower_login_of_another_form_is_refused_and_not_repeated(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_FLOWER_AUTH", given)
    with pytest.raises(ConfigError, match="user:password") as refused:
        FlowerAccess.on(5555)
    assert "secret" not in str(refused.value)
