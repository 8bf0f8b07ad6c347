"""`trawl alert`: rules made while the fleet runs, from a command to a receiver that counts."""

from __future__ import annotations

import json
import socket
import socketserver
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import redis

from demo.forum.process import ForumProcess
from demo.processes import PACE
from forums.state.alerts import Alerts
from forums.state.keys import ForumFleetKeys
from forums.storage import Database, parse
from tests.integration.storage.test_publish import Receiver
from tests.support.forum_fleet import BOARDS, ForumFleet
from tests.support.items import at, comment, wire
from tests.support.processes import none_left, wait_until
from tests.support.trawl_command import Trawl, commands, one_line
from tests.support.watched_fleet import MARK


@pytest.fixture
def trawl(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Trawl:
    """Commands with a Redis, a data folder and a database of their own."""
    return commands(redis_url, tmp_path, monkeypatch, capfd)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    one = Receiver()
    yield one
    one.server.shutdown()
    one.server.server_close()


class MailServer(socketserver.ThreadingTCPServer):
    """Takes every mail, by as much of SMTP as a client needs."""

    def __init__(self) -> None:
        self.mails: list[str] = []
        mails = self.mails

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self.wfile.write(b"220 here\r\n")
                for line in self.rfile:
                    word = line[:4].upper().strip()
                    if word == b"DATA":
                        self.wfile.write(b"354 go on\r\n")
                        mails.append(b"".join(iter(self.rfile.readline, b".\r\n")).decode())
                    self.wfile.write(b"221 bye\r\n" if word == b"QUIT" else b"250 ok\r\n")

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


def stored(first: int, last: int, *, site: str = "demo", word: str = "gpu") -> None:
    made = [comment(id=f"c{n}", site=site, body=f"{word} {n}", created_at=None, fetched_at=at(n)) for n in range(first, last)]
    items = [parse(wire(one)) for one in made]
    with Database.from_url() as database:
        assert database.write(items) == []


def test_a_receiver_gets_a_test_at_once_and_then_each_post_that_matches_once(
    trawl: Trawl, redis_client: redis.Redis, receiver: Receiver
) -> None:
    from tasks import publish_events

    stored(0, 3)
    made = json.loads(trawl("alert", "gpu or rtx*", "--to", receiver.url, "--json").out)
    assert (made["alert"], made["secret"][:6], len(receiver.events)) == (1, "whsec_", 1)
    assert receiver.events[0]["type"] == "test"
    assert publish_events() == {"alert:1": "up to date"}
    stored(3, 6)
    stored(6, 9, word="paint")
    assert publish_events() == {"alert:1": "up to date"}
    assert publish_events() == {"alert:1": "up to date"}
    assert [event["id"] for event in receiver.events[1:]] == [f"demo/comment/c{n}@1" for n in (3, 4, 5)]
    assert receiver.events[1]["rules"] == ["alert 1: gpu or rtx*"]
    assert trawl("events", "list").out.splitlines()[1].split() == ["alert:1", "webhook", "0", "0", "ok"]
    assert trawl("events", "refused", "alert:1").out == "Output alert:1 refused nothing.\n"
    assert trawl("alert", "--remove", "1").code == 0
    stored(9, 12)
    assert publish_events() == {}
    assert trawl("alert", "gpu", "--to", receiver.url).code == 0, "another one with the number of the first"
    stored(12, 13)
    assert publish_events() == {"alert:1": "up to date"}
    assert [event["item"] for event in receiver.events[4:]] == ["test", "c12"], "not what was stored before it was made"


def test_posts_of_before_an_alert_are_left_out_while_a_board_is_read_first_unless_history_is_asked_for(
    trawl: Trawl, redis_client: redis.Redis, receiver: Receiver
) -> None:
    from tasks import publish_events

    with Database.from_url() as database:
        assert trawl("alert", "gpu", "--to", receiver.url).code == 0
        assert trawl("alert", "gpu", "--to", receiver.url, "--history").code == 0
        made = Alerts(redis_client).all()["1"].made_at
        assert [one["history"] for one in json.loads(trawl("alert", "--json").out)] == [False, True]
        today = datetime.fromtimestamp(made, UTC).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
        ages = {"years": 1e8, "minutes": 305.0, "now": -1.0, "day": made - today, "undated": None}
        items = [
            comment(
                id=one,
                body="a gpu",
                created_at=None if age is None else datetime.fromtimestamp(made - age, UTC).isoformat(),
                fetched_at=datetime.fromtimestamp(made + 2, UTC).isoformat(),
            )
            for one, age in ages.items()
        ]
        assert database.write([parse(wire(one)) for one in items]) == []
        edited = items[0] | {"body": "another gpu", "fetched_at": datetime.fromtimestamp(made + 9, UTC).isoformat()}
        assert database.write([parse(wire(edited))]) == []
    publish_events()
    got = {n: sorted(one["item"] for one in receiver.events if one["rules"] == [f"alert {n}: gpu"]) for n in (1, 2)}
    assert got[1] == sorted(["test", "now", "day", "undated", "years"]), "an edit is of now, a day without a time may be"
    assert got[2] == sorted(["test", *ages, "years"])


def test_an_alert_of_one_site_stands_beside_the_rules_of_the_file_also_while_the_file_is_wrong(
    trawl: Trawl, tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    from redis_components.errors import ConfigError
    from tasks import publish_events

    monkeypatch.setenv("TRAWL_CONFIG", str(tmp_path / "trawl.toml"))
    file = tmp_path / "trawl.toml"
    file.write_text(f'[outputs.log]\nkind = "file"\npath = "{tmp_path}/log"\nbegin = "oldest"\n')
    with Database.from_url():
        pass
    assert trawl("alert", "gpu", "--site", "example", "--to", receiver.url).code == 0
    stored(0, 2)
    stored(2, 4, site="example")
    assert publish_events() == {"log": "up to date", "alert:1": "up to date"}
    assert [event["item"] for event in receiver.events] == ["test", "c2", "c3"]
    file.write_text("[outputs.log]\nkind = 'mail'\n")
    stored(4, 5, site="example")
    with pytest.raises(ConfigError, match=r"outputs\.log\.kind"):
        publish_events()
    assert receiver.events[-1]["item"] == "c4"
    assert "outputs.log.kind" in trawl("status").out


def test_all_faults_are_reported_at_once_and_nothing_is_made(trawl: Trawl, redis_client: redis.Redis) -> None:
    one_line(trawl("alert", "(gpu", "--site", "exmaple", "--to", "gpu"), 2, "this ( is not closed", "mailto:you@", "'example'?")
    one_line(trawl("alert", "gpu", "--to", "stdout", "--digest-minutes", "5"), 2, "--digest-minutes")
    one_line(trawl("alert", "gpu", "--to", "mailto:a@example.org", "--quiet", "22-7"), 2, "quiet hours '22-7'")
    one_line(trawl("alert", "gpu"), 2, "--to ADDRESS")
    one_line(trawl("alert", "--remove", "7"), 2, "there is no alert 7; there is none")
    one_line(trawl("alert", "gpu", "--to", "http://127.0.0.1:1/"), 1, "the test message was not taken", "there is no alert")
    assert Alerts(redis_client).all() == {}


def test_mail_and_standard_output_get_it_too(trawl: Trawl, capfd: pytest.CaptureFixture[str]) -> None:
    from tasks import publish_events

    with MailServer() as mail:
        port = mail.server_address[1]
        made = trawl("alert", "gpu", "--to", f"mailto:you@example.org?smtp=127.0.0.1:{port}")
        assert "alert 1" in made.out, made
        printed = trawl("alert", "paint", "--to", "stdout")
        assert "alert 2: paint | test post at trawl" in printed.out
        assert "no fleet runs here" in printed.err
        with Database.from_url():
            pass
        stored(0, 1)
        stored(1, 2, word="paint")
        assert publish_events() == {"alert:1": "up to date", "alert:2": "up to date"}
        mail.shutdown()
    assert ["To: you@example.org" in one for one in mail.mails] == [True, True]
    assert "alert 2: paint | new comment at demo" in capfd.readouterr().out


def test_alerts_are_shown_kept_and_in_backups_and_no_password_with_them(
    trawl: Trawl, redis_client: redis.Redis, tmp_path: Path, receiver: Receiver
) -> None:
    assert trawl("alert", "gpu", "--to", receiver.url + "?token=hidden").code == 0
    for command in (("alert",), ("alert", "--json"), ("config", "show"), ("audit",)):
        said = trawl(*command)
        assert said.code == 0, said
        assert "gpu" in said.out, command
        assert "hidden" not in said.out, command
    key, before = ForumFleetKeys().alerts(), redis_client.hgetall(ForumFleetKeys().alerts())
    assert trawl("backup", str(tmp_path / "fleet.backup")).code == 0
    redis_client.flushall()
    assert trawl("backup", "restore", str(tmp_path / "fleet.backup"), "--force").code == 0
    assert redis_client.hgetall(key) == before, "from the backup"


@pytest.mark.processes
def test_an_alert_made_while_a_fleet_runs_gets_a_new_post_of_the_forum(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    sizes = "forum_list=1,forum_detail=1"
    with (
        none_left((MARK, str(tmp_path))),
        ForumProcess(seed=18, forums=BOARDS, threads=3, comments=2, pace=PACE) as forum,
        ForumFleet(tmp_path, forum, sizes=sizes, nodes="a", beats=1) as fleet,
    ):
        fleet.wait_crawled(120)
        (tmp_path / "command").mkdir()
        trawl = commands(fleet.redis.url, tmp_path / "command", monkeypatch, capfd)
        made = trawl("alert", "type:new", "--to", receiver.url)
        assert made.code == 0, made
        forum.control(rate=5)
        wait_until(lambda: len(receiver.events) > 1, lambda: f"a message of a new post; {fleet.said()}", 120, every_s=0.2)
        assert receiver.events[0]["type"] == "test"
        assert receiver.events[1]["type"] == "new"


def test_a_receiver_that_is_away_is_named_in_words(trawl: Trawl, redis_client: redis.Redis) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    said = trawl("alert", "gpu", "--to", f"http://127.0.0.1:{port}/hook")
    one_line(
        said, 1, f"the test message was not taken, so there is no alert: 127.0.0.1:{port} does not answer (connection refused)"
    )
    assert Alerts(redis_client).all() == {}
