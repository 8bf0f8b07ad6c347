"""`trawl seed`, `scale`, `status`, `export`, `db` against a real Redis and a real database: outcomes, exit codes, bad input."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import sqlite3
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis

from cli.commands.forums import NO_FORUM, NO_REDIS, NO_SITE
from forums.records.stored import Item
from forums.sites import sites_dir
from forums.state.keys import ForumState, ForumStates, Ledger, Purpose, Spending
from forums.storage import Database, parse
from forums.storage.database import VERSION
from forums.writer.fleet_database import forget
from forums.writer.store import store
from redis_components.items.stream import ItemStream, Refusal
from redis_components.keys import CrawlKeys
from redis_components.server.untrusted_values import server_time
from tests.support import warm_start
from tests.support.items import comment, post, wire
from tests.support.trawl_command import SITE, Trawl, commands, one_line
from workers.state.nodes import NodeRecord, Nodes
from workers.state.registry import CrawlerRecord, CrawlerState, Registry

LISTS = CrawlKeys.for_spider("forum_list")
DETAILS = CrawlKeys.for_spider("forum_detail")


@pytest.fixture
def trawl(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Trawl:
    """Run a command in this process, with a Redis, a data folder and one site of its own."""
    return commands(redis_url, tmp_path, monkeypatch, capfd)


def bury(client: redis.Redis, keys: CrawlKeys, url: str, reason: str, at_s: int = 1000) -> None:
    """A start task that was given up, as `exchange.lua` writes it."""
    head = json.dumps({"at_ms": at_s * 1000, "kind": "l", "reason": reason, "score": ""})
    client.rpush(keys.dead(), f"{head}\n{url}")


# wrong use of the command line


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("nope",), "No such command 'nope'"),
        (("scale",), "Missing argument"),
        (("seed", "--nope"), "No such option: --nope"),
        (("export", "likes"), "likes"),
        (("export", "--format", "xml"), "xml"),
        (("up", "--port-flower", "70000"), "65535"),
        (("migrate", "frontera", "forum"), "No such command 'frontera'"),
        (("migrate", "scrapy-redis"), "Missing argument"),
        (("migrate", "scrapy-redis", "forum", "--watch", "60"), "25"),
        (("dead", "replay", "--limit", "0"), "--limit"),
    ],
)
def test_wrong_use_is_one_line_that_names_the_help_and_exit_code_2(arguments: tuple[str, ...], word: str, trawl: Trawl) -> None:
    one_line(trawl(*arguments), 2, word, "trawl --help")


def test_every_command_has_a_help_with_an_example(trawl: Trawl) -> None:
    assert "trawl status --watch" in trawl("--help").out
    for command in (
        "up",
        "seed",
        "forums list",
        "forums rescan",
        "forums backfill",
        "scale",
        "status",
        "roll",
        "autoscale",
        "export",
        "dead list",
        "migrate",
    ):
        said = trawl(*command.split(), "--help")
        assert said.code == 0
        assert f"trawl {command.removesuffix(' list')}" in said.out.split("Examples")[1], f"{command} shows how it is used"


def test_help_is_quick_because_nothing_heavy_is_loaded() -> None:
    script = "import sys, cli.main; print(sorted({'redis', 'celery', 'scrapy', 'sqlalchemy', 'pydantic'} & set(sys.modules)))"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout.strip() == "[]"


# seed


def test_seed_takes_what_is_due_once_and_says_so(trawl: Trawl, redis_client: redis.Redis) -> None:
    first = trawl("seed")
    assert first.code == 0
    assert [line.split() for line in first.out.splitlines()[1:]] == [["example/news", "seeded"], ["example/help", "seeded"]]
    assert "trawl up" in first.err, "nobody is there to scan them"
    assert redis_client.llen(LISTS.start_tasks()) == 2
    second = trawl("seed", "--json", "--force")
    assert second.code == 0
    assert {forum: said.split()[0] for forum, said in json.loads(second.out).items()} == {
        "example/news": "pending",
        "example/help": "pending",
    }
    assert second.err == ""
    assert redis_client.llen(LISTS.start_tasks()) == 2


def test_a_seed_without_effect_names_the_one_that_has_one(trawl: Trawl, redis_client: redis.Redis) -> None:
    now = server_time(redis_client)
    scanned = ForumState(scanned_at=now, tried_at=now, first_at=now)
    ForumStates(redis_client).write({"example/news": scanned, "example/help": scanned})
    early = trawl("seed")
    assert early.out.count("not due until") == 2
    assert "no board is due: `trawl seed --force`" in early.err
    assert "--force" not in trawl("seed", "--force").err
    assert "example/news" in trawl("forums").out
    assert trawl("forums").out.count("learning") == 2, "one scan does not show how often it changes"


def test_seed_takes_named_forums_and_refuses_the_one_it_does_not_know(trawl: Trawl, redis_client: redis.Redis) -> None:
    said = trawl("seed", "help", "nope")
    assert said.code == 1
    assert "trawl: ?/nope: unknown forum: example has news, help" in said.err
    assert "example/help  seeded" in said.out
    assert redis_client.llen(LISTS.start_tasks()) == 1


def test_a_forum_may_be_named_as_reports_name_it(trawl: Trawl, redis_client: redis.Redis) -> None:
    assert "example/help  seeded" in trawl("forums", "rescan", "example/help").out
    assert trawl("forums", "backfill", "example", "news").code == 0
    assert "trawl: example/nope: unknown forum: example has news, help" in trawl("seed", "example/nope").err
    assert redis_client.llen(LISTS.start_tasks()) == 2


def test_seed_does_not_say_that_nobody_scans_while_a_crawler_does(trawl: Trawl, redis_client: redis.Redis) -> None:
    Registry(redis_client).note(CrawlerRecord(spider="forum_list", pid=1, state=CrawlerState.RUNNING))
    assert trawl("seed").err == ""


def test_seed_of_an_unknown_site_is_wrong_use_and_lists_the_sites_there_are(trawl: Trawl) -> None:
    one_line(trawl("seed", "--site", "nope"), 2, "unknown site 'nope'", "example")


def test_seed_without_a_site_file_says_where_to_put_one(trawl: Trawl, tmp_path: Path) -> None:
    (tmp_path / "sites" / "example.toml").unlink()
    one_line(trawl("seed"), 2, str(tmp_path / "sites"), "TRAWL_SITES_DIR")


def test_seed_with_a_broken_site_file_names_file_and_key(trawl: Trawl, tmp_path: Path) -> None:
    (tmp_path / "sites" / "example.toml").write_text(SITE + "limits.pages_per_scan = 0\n")
    one_line(trawl("seed"), 1, "example/?", "example.toml", "pages_per_scan")
    one_line(trawl("seed", "news"), 2, "example.toml", "pages_per_scan")


def test_seed_goes_on_where_another_site_file_is_broken_which_is_said_once_and_in_the_status(
    trawl: Trawl, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken = tmp_path / "sites" / "broken.toml"
    broken.write_text("base_url = 7\n")
    for first in (True, False):
        said = trawl("seed")
        assert said.code == 1
        assert f"example/news  {'seeded' if first else 'pending'}" in said.out
        assert "broken" not in said.out
        assert said.err.count("trawl: broken/?: ") == said.err.count("base_url") == 1
    (logged,) = [line.getMessage() for line in caplog.records if line.name == "forums.scheduling.seeding"]
    assert logged.startswith(f"site broken is not seeded: {broken}: base_url = 7: ")
    status = trawl("status").out
    assert "broken  wrong file" in status
    assert json.loads(trawl("status", "--json").out)["sites"]["wrong_files"].keys() == {"broken"}
    broken.write_text(SITE)
    trawl("seed")
    assert "wrong file" not in trawl("status").out
    broken.write_text("base_url = 7\n")
    trawl("seed")
    found = json.loads(trawl("forums", "--json").out)["forums"]
    assert {(one["site"], one["state"]) for one in found} == {("broken", "not scanned"), ("example", "new")}


# forums


def test_forums_tells_how_fresh_each_one_is_and_what_was_spent(
    trawl: Trawl, redis_client: redis.Redis, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert trawl("forums").out.splitlines() == [NO_FORUM]
    monkeypatch.delenv("TRAWL_REDIS_URL")
    assert trawl("forums").out.splitlines()[0] == NO_REDIS
    (file := sites_dir() / "example.toml").rename(away := file.with_suffix(".away"))
    assert trawl("forums").out.splitlines()[0] == NO_SITE, "the last site was removed"
    away.rename(file)
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)
    trawl("seed")
    now = time.time()
    gone = ForumState(scanned_at=now - 6000, tried_at=now - 6000, errors=2, reason="page 1: 503", newest_at=now - 9600)
    states = ForumStates(redis_client)
    states.write({"example/help": gone})
    states.store_dues({"example/help": now - 4000, "example/news": now}, now, whole=True)
    Ledger(redis_client).add([Spending(site="example", name="x", purpose=Purpose.DETAIL, ended_at=now, requests=7)])
    lines = trawl("forums").out.splitlines()
    assert lines[1].split()[:3] == ["example/help", "stale", "100"], "the stalest first"
    assert lines[1].endswith("2 scans failed: page 1: 503")
    assert lines[2].split()[:2] == ["example/news", "new"]
    assert lines[-1] == "example: 7 of 1,200 requests in the last hour (lists 0, threads 7, checks 0, history 0)"
    assert " ".join(" ".join(lines[-3:-1]).split()) == (
        "example: an edit in a quiet thread is found an hour after its last post within 71 min, a day after its last post within "
        "8 h, a week after its last post within 30 h, after 30 days not; later where checks wait"
    )
    found = json.loads(trawl("forums", "example", "--json").out)
    assert [(one["forum"], one["state"], one["failed_scans"]) for one in found["forums"]] == [
        ("help", "stale", 2),
        ("news", "new", 0),
    ]
    assert found["budgets"][0]["spent"] == 7
    delays = {one["last_post_s"]: one["found_within_s"] / 60 for one in found["budgets"][0]["edit_delays"]}
    assert {age: round(minutes) for age, minutes in delays.items()} == {3600: 71, 86400: 508, 604800: 1793}


def test_rescan_and_backfill_queue_what_is_named_and_say_so(trawl: Trawl, redis_client: redis.Redis) -> None:
    assert "example/news  seeded" in trawl("forums", "rescan", "news", "--depth", "5").out
    assert trawl("forums", "backfill", "example", "help", "--since", "2026-01-31").code == 0
    assert [json.loads(task) for task in redis_client.lrange(LISTS.start_tasks(), 0, -1)] == [
        {"site": "example", "forum": "news", "mode": "deep", "pages": 5},
        {"site": "example", "forum": "help", "mode": "backfill", "since": "2026-01-31T00:00:00+00:00"},
    ]
    one_line(trawl("forums", "backfill", "example", "--since", "yesterday"), 2, "--since", "2026-01-31")
    assert trawl("forums", "rescan", "nope").code == 1


# scale


def test_scale_sets_what_is_desired_and_prints_all_of_it(trawl: Trawl, redis_client: redis.Redis) -> None:
    assert trawl("scale", "forum_detail=4").out == "desired: forum_detail=4, forum_list=1\n"
    assert json.loads(trawl("scale", "forum_list=0,forum_detail=2", "--json").out) == {"forum_list": 0, "forum_detail": 2}
    assert Registry(redis_client).desired() == {"forum_list": 0, "forum_detail": 2}


def test_a_roll_without_crawlers_is_over_at_once_and_another_one_is_refused_while_it_runs(
    trawl: Trawl, redis_client: redis.Redis
) -> None:
    assert trawl("roll", "--abort").out == "no roll is running\n"
    one_line(trawl("roll", "nope"), 2, "unknown service 'nope'", "forum_detail, forum_list")
    one_line(trawl("roll", "--abort", "forum_list"), 2, "--abort cannot be combined with services")
    for _ in range(2):
        assert trawl("roll").out == "no crawler runs there\n"
    registry = Registry(redis_client)
    slot = registry.acquire("forum_list", 0, "a@host")
    assert slot
    registry.renew(slot, CrawlerRecord(spider="forum_list", number=0, token=slot.token, state=CrawlerState.RUNNING))
    assert trawl("roll", "--no-wait").out == "begun: 1 crawlers to replace\n"
    one_line(trawl("roll", "forum_list"), 1, "a roll of forum_detail, forum_list is under way", "trawl roll --abort")
    assert json.loads(trawl("roll", "--abort", "--json").out)["state"] == "aborted"
    assert json.loads(trawl("roll", "forum_list", "--no-wait", "--json").out)["waiting"] == ["forum_list/0"]


def test_nodes_are_shown_with_what_they_serve_and_their_room(trawl: Trawl, redis_client: redis.Redis) -> None:
    nodes = Nodes(redis_client)
    nodes.beat(NodeRecord(name="a@host", services=("forum_list",), capacity=4, taken=1, version="0.1.0"))
    nodes.drain("a@host")
    (row,) = [line.split() for line in trawl("status").out.splitlines() if line.startswith("a@host")]
    assert (row[:3], row[-2:]) == (["a@host", "draining", "1/4"], ["0.1.0", "forum_list"])
    (node,) = json.loads(trawl("status", "--json").out)["nodes"]
    assert node.pop("heartbeat_age_s") < 5
    assert node == {
        "name": "a@host",
        "state": "draining",
        "services": ["forum_list"],
        "capacity": 4,
        "taken": 1,
        "version": "0.1.0",
        "draining": True,
        "rivals": False,
        "started_at": None,
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nope=1",), "unknown service 'nope'"),
        (("forum_list=x",), "forum_list=x"),
        (("forum_list=1", "nope=1"), "unknown service"),
    ],
)
def test_scale_refuses_what_cannot_be_and_changes_nothing(
    words: tuple[str, ...], said: str, trawl: Trawl, redis_client: redis.Redis
) -> None:
    one_line(trawl("scale", *words), 2, said)
    assert Registry(redis_client).desired() == {}


# status


def test_status_of_an_empty_redis_shows_the_services_and_how_to_start_them(trawl: Trawl) -> None:
    said = trawl("status")
    assert said.code == 1, "something needs attention"
    assert "forum_list" in said.out
    assert "0/1" in said.out
    assert "trawl up" in said.out


def test_status_shows_crawlers_queues_and_errors_and_hides_the_password(
    trawl: Trawl, redis_client: redis.Redis, redis_url: str
) -> None:
    registry = Registry(redis_client)
    slot = registry.acquire("forum_list", 0, "worker@host")
    assert slot
    record = CrawlerRecord(
        spider="forum_list", number=0, pid=4711, node="worker@host", state=CrawlerState.RUNNING, token=slot.token
    )
    registry.renew(slot, record)
    registry.report_error("forum_detail/0", "crash-looping: no module named x")
    trawl("seed")
    text = trawl("status").out
    assert "4711" in text
    assert "crash-looping: no module named x" in text
    seen = json.loads(trawl("status", "--json").out)
    assert seen["running"] is True
    assert {one["service"]: (one["desired"], one["alive"], one["start_tasks"]) for one in seen["services"]} == {
        "forum_list": (1, 1, 2),
        "forum_detail": (1, 0, 0),
    }
    assert [one["crawler"] for one in seen["crawlers"] if one["alive"]] == ["forum_list/0"]
    password = redis_url.split("@")[0].rpartition(":")[2]
    assert password not in text + json.dumps(seen)


def test_a_database_that_was_moved_is_shown_until_its_threads_are_forgotten(
    trawl: Trawl, redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stored_in(name: str) -> bool:
        """Return what the status says after the fleet was given this database."""
        monkeypatch.setenv("TRAWL_DATABASE_URL", f"sqlite:///{tmp_path}/{name}.sqlite")
        assert trawl("db", "move", "--yes").code == 0
        store(redis_client, ["forum_detail"])
        shown = json.loads(trawl("status", "--json").out)["another_database"]
        assert isinstance(shown, bool)
        return shown

    assert not stored_in("one")
    assert stored_in("two")
    assert "trawl forums forget --all" in trawl("status").out
    assert not stored_in("one")
    assert stored_in("two")
    refused = trawl("forums", "forget", "--all")
    assert refused.code == 2
    assert "every thread of every site" in refused.err
    assert "add --yes" in refused.err
    assert stored_in("two")
    trawl("forums", "forget", "--all", "--yes")
    assert not stored_in("two")
    for name in ("one", "two"):
        forget(f"sqlite:///{tmp_path}/{name}.sqlite")


def test_status_without_any_redis_says_so_and_starts_none(trawl: Trawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRAWL_REDIS_URL")
    said = trawl("status")
    assert said.code == 1
    assert "Nothing is running here" in said.out
    assert json.loads(trawl("status", "--json").out) == {"running": False}
    assert not (tmp_path / "data").exists(), "looking leaves no trace"


# Redis that is not there


@pytest.mark.parametrize("command", [("status",), ("seed",), ("scale", "forum_list=1"), ("up",)])
def test_a_redis_that_is_not_there_is_one_line_that_says_how_to_mend_it(
    command: tuple[str, ...], trawl: Trawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_REDIS_URL", "redis://:secret@127.0.0.1:1/0")
    arguments = (*command, "--port-flower=0", "--port-exporter=0") if command == ("up",) else command
    said = trawl(*arguments)
    one_line(said, 1, "is not running", "TRAWL_REDIS_URL")
    assert "secret" not in said.err


def test_a_redis_that_refuses_the_password_is_one_line(trawl: Trawl, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    host = redis_url.rpartition("@")[2]
    monkeypatch.setenv("TRAWL_REDIS_URL", f"redis://:wrong@{host}")
    one_line(trawl("status"), 1, "does not accept the password")


def test_a_wrong_url_or_fleet_is_wrong_use(trawl: Trawl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_FLEET", "forum_list")
    one_line(trawl("status"), 2, "TRAWL_FLEET")
    monkeypatch.setenv("TRAWL_REDIS_URL", "http://127.0.0.1")
    one_line(trawl("seed"), 2, "not a Redis URL")


def test_with_trawl_debug_the_traceback_is_shown_before_the_line(trawl: Trawl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_DEBUG", "1")
    said = trawl("scale", "nope=1")
    assert said.code == 2
    assert said.err.startswith("Traceback")
    assert said.err.splitlines()[-1].startswith("trawl: unknown service")
    monkeypatch.delenv("TRAWL_DEBUG")
    monkeypatch.setenv("TRAWL_DEBUG_FILE", "/nowhere")
    one_line(trawl("scale", "nope"), 2, "service=number")


# export, db


def item(fields: dict[str, Any]) -> Item:
    return parse(wire(fields))


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """Two posts of two sites, fetched a day apart, and a comment; returns the data folder."""
    data = tmp_path / "data"
    now, yesterday = (moment.isoformat() for moment in (datetime.now(UTC), datetime.now(UTC) - timedelta(days=1)))
    with Database.from_url(f"sqlite:///{data}/trawl.sqlite") as database:
        refused = database.write(
            [
                item(post(site="example", id="p1", title='Größe, "quoted"\nand folded', fetched_at=now)),
                item(post(site="other", id="p2", fetched_at=yesterday)),
                item(comment(site="example", id="c1", post_id="p1", fetched_at=now)),
            ]
        )
    assert not refused
    return data


def test_export_writes_json_lines_to_standard_output(trawl: Trawl, stored: Path) -> None:
    said = trawl("export")
    assert said.code == 0
    assert [(row["site"], row["id"]) for row in map(json.loads, said.out.splitlines())] == [("example", "p1"), ("other", "p2")]
    assert said.err == "2 posts written to standard output\n"


def test_export_keeps_one_site_or_what_is_new(trawl: Trawl, stored: Path) -> None:
    assert [json.loads(line)["id"] for line in trawl("export", "--site", "other").out.splitlines()] == ["p2"]
    assert [json.loads(line)["id"] for line in trawl("export", "--since", "2h").out.splitlines()] == ["p1"]


def test_older_tables_are_upgraded_by_db_and_not_by_who_reads(trawl: Trawl, stored: Path) -> None:
    for file in stored.glob("trawl.sqlite*"):
        file.unlink()
    with contextlib.closing(sqlite3.connect(stored / "trawl.sqlite")) as connection, connection:
        connection.executescript((Path(__file__).parent / "storage" / "version_4.sqlite.sql").read_text())
        connection.execute("INSERT INTO trawl_schema VALUES (1, 4, '2026-01-01T00:00:00.000000Z', 'x')")
    one_line(trawl("export"), 1, f"its tables have version 4, this Trawl reads {VERSION}", "trawl db upgrade")
    assert f"its tables had version 4, and now {VERSION}" in trawl("db", "upgrade").out
    assert f"have version {VERSION} already" in trawl("db", "upgrade").out
    assert trawl("export").code == 0


def test_export_writes_a_csv_file_that_reads_back(trawl: Trawl, stored: Path, tmp_path: Path) -> None:
    target = tmp_path / "posts.csv"
    said = trawl("export", "posts", "-f", "csv", "-o", str(target), "--json")
    assert json.loads(said.out) == {"table": "posts", "rows": 2, "file": str(target)}
    rows = list(csv.DictReader(io.StringIO(target.read_text("utf-8"), newline="")))
    assert next(row["title"] for row in rows) == 'Größe, "quoted"\nand folded'
    assert list(tmp_path.glob("*.part")) == []


def test_export_before_anything_is_stored_creates_no_database(trawl: Trawl, tmp_path: Path) -> None:
    one_line(trawl("export"), 1, "does not exist yet", "trawl seed")
    assert not (tmp_path / "data" / "trawl.sqlite").exists()


def test_export_to_a_place_that_cannot_be_written_is_one_line_and_leaves_no_file(
    trawl: Trawl, stored: Path, tmp_path: Path
) -> None:
    one_line(trawl("export", "-o", str(tmp_path / "no" / "x.jsonl")), 2, "x.jsonl", "No such file")
    (tmp_path / "file").write_text("")
    one_line(trawl("export", "-o", str(tmp_path / "file" / "x.jsonl")), 2, "Not a directory")


def test_export_with_a_wrong_since_or_database_is_wrong_use_or_one_line(
    trawl: Trawl, stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_line(trawl("export", "--since", "soon"), 2, "--since")
    monkeypatch.setenv("TRAWL_DATABASE_URL", "mysql://user:secret@host/db")
    said = trawl("export")
    one_line(said, 1, "TRAWL_DATABASE_URL" if "TRAWL_DATABASE_URL" in said.err else "postgresql")
    assert "secret" not in said.err


def test_a_reader_that_has_enough_ends_an_export_without_a_complaint(stored: Path) -> None:
    environment = {**os.environ, "TRAWL_DATA_DIR": str(stored)}
    with Database.from_url(f"sqlite:///{stored}/trawl.sqlite") as database:
        assert not database.write([item(post(site="example", id=f"x{n}", body="b" * 1000)) for n in range(500)])
    command = [sys.executable, "-m", "cli.main", "export"]
    with warm_start.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline().startswith("{")
        process.stdout.close()
        assert process.wait(60) == 0
        assert process.stderr.read() == ""


# dead


def test_dead_shows_what_was_given_up_newest_first_with_the_reason(trawl: Trawl, redis_client: redis.Redis) -> None:
    assert trawl("dead").out == "Nothing was given up.\n"
    bury(redis_client, LISTS, "http://127.0.0.1/old", "HTTP 503", 1000)
    bury(redis_client, DETAILS, "http://127.0.0.1/[red]new", "HTTP 404", 2000)
    said = trawl("dead")
    assert (said.code, said.err) == (0, "")
    assert said.out.index("http://127.0.0.1/[red]new") < said.out.index("http://127.0.0.1/old")
    assert "HTTP 503" in said.out
    assert json.loads(trawl("dead", "--json", "forum_list").out) == {
        "counts": {"forum_list": 1},
        "entries": [
            {
                "spider": "forum_list",
                "at": "1970-01-01T00:16:40Z",
                "kind": "list_task",
                "reason": "HTTP 503",
                "url": "http://127.0.0.1/old",
            }
        ],
    }


def test_refused_items_are_shown_replayed_and_purged(trawl: Trawl, redis_client: redis.Redis) -> None:
    keys = CrawlKeys.for_spider("books")
    redis_client.rpush(keys.item_stream(), b"good", b'{"price": "\xff"}', b"[b]worse[/b]")
    stream = ItemStream(redis_client, keys)
    stream.lock("a")
    stream.settle("a", 3, [Refusal(1, "price: no number"), Refusal(2, "no kind")], [])
    shown = trawl("dead", "items", "books").out
    assert "price: no number" in shown
    assert "[b]worse[/b]" in shown
    assert json.loads(trawl("dead", "items", "books", "--json").out)["counts"] == {"books": 2}

    assert trawl("dead", "items", "replay", "books", "--reason", "PRICE").out == "replayed: books 1\n"
    assert redis_client.lrange(keys.item_stream(), 0, -1) == [b'{"price": "\xff"}']
    one_line(trawl("dead", "items", "purge", "books"), 2, "choose them with --older-than 30d, or use --yes for all")
    one_line(trawl("dead", "items", "books", "--yes"), 2, "No such option")
    one_line(trawl("dead", "items", "replay", "purge"), 2, "unknown spider 'purge'")
    assert trawl("dead", "items", "purge", "books", "--yes").out == "purged: books 1\n"
    assert trawl("dead", "items", "books").out == "No item was refused.\n"


def test_dead_shows_no_more_than_its_limit(trawl: Trawl, redis_client: redis.Redis) -> None:
    for number in range(5):
        bury(redis_client, LISTS, f"http://127.0.0.1/{number}", "HTTP 503")
    shown = json.loads(trawl("dead", "-n", "2", "--json").out)
    assert [entry["url"][-1] for entry in shown["entries"]] == ["4", "3"]
    assert shown["counts"] == {"forum_detail": 0, "forum_list": 5}


def test_dead_replay_puts_back_what_was_asked_for(trawl: Trawl, redis_client: redis.Redis) -> None:
    bury(redis_client, LISTS, "http://127.0.0.1/1", "HTTP 503")
    bury(redis_client, LISTS, "http://127.0.0.1/2", "HTTP 404")
    assert trawl("dead", "replay", "--reason", "503").out == "replayed: forum_detail 0, forum_list 1\n"
    assert redis_client.lrange(LISTS.start_tasks(), 0, 9) == [b"http://127.0.0.1/1"]
    assert json.loads(trawl("dead", "replay", "forum_list", "--json").out) == {
        "forum_list": {"replayed": 1, "foreign": 0, "stuck": 0}
    }
    assert trawl("dead", "replay").out == "replayed: forum_detail 0, forum_list 0\n"


def test_dead_purge_wants_to_be_told_what(trawl: Trawl, redis_client: redis.Redis) -> None:
    bury(redis_client, LISTS, "http://127.0.0.1/1", "HTTP 503", 1000)
    bury(redis_client, LISTS, "http://127.0.0.1/2", "HTTP 404", 2**32)
    one_line(trawl("dead", "purge"), 2, "--older-than 30d", "--yes")
    one_line(trawl("dead", "purge", "--older-than", "old"), 2, "--older-than 'old' is not a time")
    assert redis_client.llen(LISTS.dead()) == 2
    assert trawl("dead", "purge", "--older-than", "1d").out == "purged: forum_detail 0, forum_list 1\n"
    assert trawl("dead", "purge", "--yes").out == "purged: forum_detail 0, forum_list 1\n"
    assert redis_client.exists(LISTS.dead()) == 0


def test_foreign_entries_among_the_dead_are_named_and_kept(trawl: Trawl, redis_client: redis.Redis) -> None:
    redis_client.rpush(LISTS.dead(), "what is this?")
    assert trawl("dead").out == "No entry of the newest 20 can be shown.\n"
    for arguments in (("dead", "replay"), ("dead", "purge", "--yes")):
        one_line(trawl(*arguments), 0, "forum_list: 1 entries among the dead requests were not written by Trawl; left in place")
    assert redis_client.lrange(LISTS.dead(), 0, 9) == [b"what is this?"]


def test_a_dead_letter_key_of_another_type_keeps_no_other_service_from_its_letters(
    trawl: Trawl, redis_client: redis.Redis
) -> None:
    bury(redis_client, DETAILS, "http://127.0.0.1/1", "HTTP 503")
    redis_client.set(LISTS.dead(), "mine")
    redis_client.hset(LISTS.bad_items(), "mine", 1)
    for arguments in (("dead",), ("dead", "items"), ("dead", "replay"), ("dead", "purge", "--older-than", "1d")):
        said = trawl(*arguments)
        assert (said.code, said.err.count("\n")) == (1, 1), arguments
        assert "forum_list: a key has another type than Trawl's: trawl doctor names it" in said.err
    assert "trawl doctor" not in trawl("dead", "forum_detail").err
    redis_client.delete(LISTS.dead(), LISTS.bad_items())
    assert trawl("dead").code == 0
