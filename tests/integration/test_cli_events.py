"""`trawl events tail` and `trawl events` with a real database; the task that publishes."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import redis
from sqlalchemy import update

from forums.events.cursors import Cursors
from forums.state.site_faults import output_troubles
from forums.storage import Database, parse
from forums.storage.history import log_stream
from forums.storage.read.event_reader import EventLog
from forums.storage.schema.tables import event_outputs, events
from forums.storage.write.changes import BEGINNING, Change, Position
from redis_components.errors import ConfigError
from tests.support.items import at, comment, post, wire
from tests.support.message_receiver import MessageReceiver
from tests.support.processes import wait_until
from tests.support.trawl_command import Trawl, commands, one_line


@pytest.fixture
def trawl(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Trawl:
    """Run a command in this process, with a Redis, a data folder and one site of its own."""
    monkeypatch.setenv("TRAWL_EVENTS_FILE", str(tmp_path / "events.toml"))
    monkeypatch.setenv("HOOK_SECRET", "a secret of some length")
    return commands(redis_url, tmp_path, monkeypatch, capfd)


def filled() -> None:
    hostile = comment(body="click \x1b]0;owned\x07 [red]here[/red] 显卡\nnow", author="\u202emallory", fetched_at=at(2))
    with Database.from_url() as database:
        assert database.write([parse(wire(post(title="GPU prices", fetched_at=at(1)))), parse(wire(hostile))]) == []


def test_tail_shows_what_fits_and_nothing_that_acts_on_a_terminal(trawl: Trawl) -> None:
    filled()
    shown = trawl("events", "tail", "--no-follow", "--match", "显卡").out
    assert "new comment" in shown
    assert "[red]here[/red] 显卡 now" in shown
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)
    assert "GPU prices" in trawl("events", "tail", "--no-follow", "--match", "row:post").out
    everything = [json.loads(line) for line in trawl("events", "tail", "--no-follow", "--json", "--since", "1h").out.splitlines()]
    assert [event["id"] for event in everything] == ["demo/post/p1@1", "demo/comment/c1@1"]
    assert everything[1]["text"].startswith("click \x1b]0;")  # as it is, escaped by JSON
    assert trawl("events", "tail", "--no-follow", "--site", "demo", "--match", "not (row:post or row:comment)").out == ""


def test_tail_shows_the_fleet_where_it_is_asked_for(trawl: Trawl) -> None:
    filled()
    with Database.from_url() as database:
        opened = Change("breaker", "demo", "1", "", 1, "opened", "", sentence="a wall", at=9.0)
        assert log_stream(database, "notes", None, Position(1, 0), [opened])
    assert "breaker" not in trawl("events", "tail", "--no-follow").out
    assert "opened breaker    demo  a wall" in trawl("events", "tail", "--no-follow", "--all", "--match", "row:breaker").out
    everything = trawl("events", "tail", "--no-follow", "--all", "--json").out.splitlines()
    assert [json.loads(line)["row"] for line in everything] == ["post", "comment", "breaker"]


def test_an_output_whose_cursor_stands_still_is_not_ok(trawl: Trawl, tmp_path: Path) -> None:
    filled()
    (tmp_path / "events.toml").write_text('[outputs.a]\nkind = "file"\npath = "x"\n')
    long_ago = datetime.now(UTC) - timedelta(minutes=7)
    with Database.from_url() as database:
        Cursors(database).create("a", BEGINNING)
        assert (shown := trawl("events", "list")).code == 0, shown
        with database.engine.begin() as connection:
            connection.execute(update(event_outputs).values(told_at=long_ago))
        assert trawl("events", "list").code == 0  # its events are new
        with database.engine.begin() as connection:
            connection.execute(update(events).values(stored_at=long_ago))
    assert (shown := trawl("events", "list")).code == 1
    assert "not moved for 7 minutes" in shown.out


def test_wrong_use_is_one_line_that_names_the_fix(trawl: Trawl, tmp_path: Path) -> None:
    one_line(trawl("events", "tail", "--no-follow"), 1, "does not exist yet")
    filled()
    one_line(trawl("events", "tail", "--no-follow", "--match", "autor:x"), 2, "did you mean 'author'")
    one_line(trawl("events", "tail", "--no-follow", "--site", "dmeo"), 2, "dmeo")
    one_line(trawl("events", "list"), 2, "trawl.toml has no outputs", "TRAWL_CONFIG")
    rules = tmp_path / "events.toml"
    for text, said in (
        ('[rules.a]\nmatch = "("', "rules.a.match"),
        ("[outputs.a]\nkind = 'mail'", 'must be one of "file", "stream", "webhook"'),
        ("[outputs.a]\nkind = 'file'\npath = 'x'\nrules = ['b']", "no rule 'b'"),
        ("[outputs.a]\nkind = 'file'\npath = 'x'\nsize = 3", "outputs.a.size: there is no such key"),
        ("[outputs.a]\nkind = 'webhook'\nurl = 'https://x.example'\nsecret = 'in the file, long'", "must not stand in the file"),
        ("[outputs.a]\nkind = 'webhook'\nurl = 'https://x.example'\nsecret = '${NOT_SET}'", "NOT_SET is not set"),
        ("[outputs.a]\nkind = 'webhook'\nurl = 'ftp://x.example'\nsecret = '${HOOK_SECRET}'", "must be an address"),
        ("[outputs.a]\nkind = 'stream'\nmax_length = 3", "greater than or equal to 100"),
        ("[", "is not TOML"),
    ):
        rules.write_text(text, "utf-8")
        one_line(trawl("events", "list"), 2, "events.toml", said)


def test_outputs_are_listed_replayed_and_told_by_the_task(trawl: Trawl, tmp_path: Path, redis_client: redis.Redis) -> None:
    from tasks import publish_events

    filled()
    assert publish_events() == {}
    (tmp_path / "events.toml").write_text('[outputs.log]\nkind = "file"\npth = "log.jsonl"\n', "utf-8")
    with pytest.raises(ConfigError, match=r"outputs\.log\.pth"):
        publish_events()
    status = trawl("status")
    assert (status.code, "the rules file is wrong" in status.out) == (1, True), status.out
    (tmp_path / "events.toml").write_text(
        f'[outputs.log]\nkind = "file"\npath = "{tmp_path}/log.jsonl"\nbegin = "oldest"\n'
        '[outputs.shop]\nkind = "webhook"\nurl = "http://127.0.0.1:1/"\nsecret = "${HOOK_SECRET}"\nbegin = "oldest"\n',
        "utf-8",
    )
    assert publish_events() == {"log": "up to date", "shop": "failed"}
    assert output_troubles(redis_client) == {}, "the file is right again"
    assert len((tmp_path / "log.jsonl").read_text("utf-8").splitlines()) == 2
    listed = trawl("events", "list")
    assert listed.code == 1
    assert [line.split()[:4] for line in listed.out.splitlines()[1:]] == [
        ["log", "file", "0", "0"],
        ["shop", "webhook", "2", "0"],
    ]
    one_line(trawl("events", "replay", "log", "--since", "1h"), 2, "has each event once")
    one_line(trawl("events", "replay", "shop"), 2, "--since 2h")
    one_line(trawl("events", "refused", "shpo"), 2, "did you mean 'shop'")
    assert "2 events again" in trawl("events", "replay", "shop", "--since", "1d").out
    with Database.from_url() as database:
        cursors = Cursors(database)
        first = EventLog(database).read(BEGINNING)[0]
        cursors.advance(cursors.all()["shop"], first.at, [(first, "HTTP 422: \x1b[31mno")])
    refused = trawl("events", "refused", "shop").out
    assert f"{first.id}: HTTP 422: \\x1b[31mno" in refused


def test_people_are_told_of_events_and_alarms_through_apprise(
    trawl: Trawl, tmp_path: Path, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    from forums.events import messages
    from forums.events.messages import LASTS_S, OVER_S
    from redis_components.server.untrusted_values import server_time
    from tasks import notify_alarms, publish_events

    filled()
    with MessageReceiver() as receiver:
        monkeypatch.setenv("TEAM_URL", f"json://127.0.0.1:{receiver.port}/token")
        (tmp_path / "events.toml").write_text(
            '[rules.gpu]\nmatch = "gpu or 显卡"\n'
            '[outputs.team]\nkind = "notify"\nurl = "${TEAM_URL}"\nrules = ["gpu"]\nalarms = true\nbegin = "oldest"\n',
            "utf-8",
        )
        wait_until(lambda: publish_events() == {"team": "up to date"}, "what a round had no time for is sent in the next")
        assert notify_alarms() == {"team": "quiet"}  # nothing has lasted yet
        now = server_time(redis_client)
        monkeypatch.setattr(messages, "server_time", lambda self: now + LASTS_S + 1)
        assert notify_alarms() == {"team": "sent"}
        assert notify_alarms() == {"team": "quiet"}
        monkeypatch.setattr(sys.modules["fleet_operations.overview.problems"], "problems", lambda view: [])
        monkeypatch.setattr(messages, "server_time", lambda self: now + 2 * (LASTS_S + OVER_S))
        assert notify_alarms() == {"team": "sent"}
        titles = [message["title"] for message in receiver.messages]
        assert titles[:1] == ["Trawl: 2 posts for gpu"]
        assert titles[1].endswith(("problem", "problems"))
        assert "resolved" in titles[2]
        assert "click \\x1b]0;owned\\x07 [red]here[/red]" in receiver.messages[0]["message"]
