"""When messages to people are sent, and how much is in one: digests and quiet hours."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import redis
from sqlalchemy import update

from forums.events import messages
from forums.events.messages import LASTS_S, send_alarms
from forums.events.publish import OutputResult, publish
from forums.events.rules import Rules
from forums.storage import Database, parse
from forums.storage.schema.tables import event_outputs, events
from redis_components.admin.health import Problem
from redis_components.errors import ConfigError
from redis_components.server.untrusted_values import server_time
from tests.support.event_rules import rules_of
from tests.support.items import at, comment, post, wire
from tests.support.message_receiver import MessageReceiver

TROUBLE = Problem(what="forum_detail has 1 of 3 crawlers", fix="trawl history forum_detail")


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[MessageReceiver]:
    with MessageReceiver() as one:
        monkeypatch.setenv("TEAM_URL", f"json://127.0.0.1:{one.port}/")
        yield one


def team(more: str) -> Rules:
    return rules_of(
        '[rules.all]\nmatch = "text"\n[outputs.team]\nkind = "notify"\nurl = "${TEAM_URL}"\nrules = ["all"]\nalarms = true\n'
        f'begin = "oldest"\n{more}\n'
    )


def around_now(hours: int) -> str:
    """Quiet hours in UTC, from so many hours before now to as many after."""
    now = datetime.now(UTC)
    return f"{now - timedelta(hours=hours):%H:%M}-{now + timedelta(hours=hours):%H:%M}"


def store(database: Database, first: int, last: int) -> None:
    items = [parse(wire(comment(id=f"c{n}", body=f"text {n}", fetched_at=at(n)))) for n in range(first, last)]
    assert database.write(items) == []


def later(database: Database, hours: int) -> None:
    """As if so much time had gone by since everything was stored, and looked at."""
    with database.engine.begin() as connection:
        connection.execute(update(events).values(stored_at=datetime.now(UTC) - timedelta(hours=hours)))
        connection.execute(update(event_outputs).values(retry_at=None))


def test_a_digest_waits_for_its_oldest_event_and_takes_all_that_is_there(
    database: Database, redis_client: redis.Redis, receiver: MessageReceiver
) -> None:
    rules = team("digest_minutes = 60")
    store(database, 0, 30)
    assert publish(database, redis_client, rules) == {"team": OutputResult.WAITING}
    assert publish(database, redis_client, rules) == {"team": OutputResult.WAITING}, "its time is not over"
    assert receiver.messages == []
    later(database, 2)
    store(database, 30, 50)
    assert publish(database, redis_client, rules, budget_s=60) == {"team": OutputResult.UP_TO_DATE}
    (message,) = receiver.messages
    assert message["title"] == "Trawl: 50 posts for all"
    assert message["message"].count("new comment at demo") == 50


def test_a_digest_that_is_too_long_for_its_service_is_several_messages(
    database: Database, redis_client: redis.Redis, receiver: MessageReceiver
) -> None:
    titles = [f"text {n} {'long ' * 100}" for n in range(100)]
    assert database.write([parse(wire(post(id=f"p{n}", title=title, fetched_at=at(n)))) for n, title in enumerate(titles)]) == []
    assert publish(database, redis_client, team("digest_minutes = 1"), budget_s=60) == {"team": OutputResult.WAITING}
    later(database, 1)
    assert publish(database, redis_client, team("digest_minutes = 1"), budget_s=60) == {"team": OutputResult.UP_TO_DATE}
    assert all(len(message["message"]) <= 32_768 for message in receiver.messages)
    assert 2 <= len(receiver.messages) <= 4
    said = "".join(message["message"] for message in receiver.messages)
    assert [said.count(f"text {n} long") for n in range(100)] == [1] * 100


def test_nothing_is_sent_in_quiet_hours_and_all_of_it_afterwards(
    database: Database, redis_client: redis.Redis, receiver: MessageReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet, loud = team(f'quiet_hours = "{around_now(6)}"'), team("")
    store(database, 0, 3)
    assert publish(database, redis_client, quiet) == {"team": OutputResult.WAITING}
    now = server_time(redis_client)
    for moment in (now, now + LASTS_S + 1):
        monkeypatch.setattr(messages, "server_time", lambda _, moment=moment: moment)
        assert send_alarms(redis_client, quiet, [TROUBLE]) == {"team": "quiet hours"}
    assert receiver.messages == []
    later(database, 0)
    assert publish(database, redis_client, loud, budget_s=60) == {"team": OutputResult.UP_TO_DATE}
    assert send_alarms(redis_client, loud, [TROUBLE]) == {"team": "quiet"}, "it has to last from now on"
    monkeypatch.setattr(messages, "server_time", lambda _: now + 2 * LASTS_S + 2)
    assert send_alarms(redis_client, loud, [TROUBLE]) == {"team": "sent"}
    assert [message["title"] for message in receiver.messages] == ["Trawl: 3 posts for all", "Trawl: 1 problem"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('quiet_hours = "22-7"', "outputs.team: quiet hours '22-7' cannot be read"),
        ('quiet_hours = "22:00-07:00"\ntime_zone = "Berlin"', "'Berlin' is not a time zone"),
        ('time_zone = "Europe/Berln"', "'Europe/Berln' is not a time zone"),
        ("digest_minutes = 2000", "outputs.team.digest_minutes: must be less than or equal to 1440"),
    ],
)
def test_what_cannot_be_read_is_named(receiver: MessageReceiver, more: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        team(more)
    assert said in str(caught.value)
