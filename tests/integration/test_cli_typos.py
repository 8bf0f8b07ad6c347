"""A name that nothing has is an error that says what there is, and what was meant; whoever is known is not refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import redis

from forums.storage import Database, parse
from forums.writer.fleet_database import forget
from redis_components.errors import did_you_mean, unknown_name
from redis_components.keys import CrawlKeys
from tests.support.items import post, wire
from tests.support.trawl_command import Trawl, commands, one_line


@pytest.fixture
def trawl(
    redis_url: str, tmp_path: Path, empty_sqlite: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Trawl:
    (tmp_path / "data").mkdir(0o700)
    shutil.copy(empty_sqlite, tmp_path / "data")
    return commands(redis_url, tmp_path, monkeypatch, capfd)


def test_of_thousands_of_names_an_error_has_the_nearest_three() -> None:
    names = [f"site_{number}" for number in range(3528)]
    said = str(unknown_name("spider", "site_3527x", names))
    assert said == "unknown spider 'site_3527x': there are 3,528, the nearest are site_3527, site_527, site_357"


TYPOS = [
    ("history forum_detial", "forum_detail"),
    ("history forum_detial/2", "forum_detail"),
    ("dead forum_lst", "forum_list"),
    ("dead replay forum_lst", "forum_list"),
    ("dead purge --yes forum_lst", "forum_list"),
    ("dead items forum_detial", "forum_detail"),
    ("dead items replay forum_detial", "forum_detail"),
    ("dead items purge forum_detial --yes", "forum_detail"),
    ("export --site exampel", "example"),
    ("export comments --site exampel", "example"),
    ("forums forget exampel", "example"),
    ("forums exampel", "example"),
    ("limit exampel --rate 2", "example"),
    ("job list forum_lst", "forum_list"),
    ("services versions list forum_lst", "forum_list"),
    ("schedule set seed_forum --every 5s", "seed_forums"),
    ("forums backfill exampel", "example"),
    ("search word --site exampel", "example"),
    ("seed --site exampel", "example"),
    ("forums rescan news --site exampel", "example"),
    ("sites reparse exampel", "example"),
    ("sites check exampel", "example"),
    ("pause --site exampel", "example"),
    ("pause forum_lst", "forum_list"),
    ("drain forum_lst", "forum_list"),
    ("stop forum_lst", "forum_list"),
    ("stop forum_lst/1", "forum_list"),
    ("resume forum_lst", "forum_list"),
    ("scale forum_lst=1", "forum_list"),
    ("autoscale forum_lst --max 2", "forum_list"),
    ("roll forum_lst", "forum_list"),
    ("schedule disable seed_forum", "seed_forums"),
    ("schedule remove seed_forum", "seed_forums"),
    ("logs --level WARNIN", "WARNING"),
]


@pytest.mark.parametrize(("line", "meant"), TYPOS, ids=[line for line, _ in TYPOS])
def test_a_typo_is_an_error_that_says_what_was_meant(line: str, meant: str, trawl: Trawl) -> None:
    said = trawl(*line.split())
    assert said.code in (1, 2), said
    assert "Traceback" not in said.err
    assert f"did you mean '{meant}'?" in said.err


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("history nope", "forum_detail, forum_list"),
        ("dead nope", "forum_detail, forum_list"),
        ("dead replay nope", "forum_detail, forum_list"),
        ("export posts --site nope", "example"),
        ("migrate scrapy-redis nope --watch 0", "forum_detail, forum_list"),
        ("forums forget nope", "example"),
    ],
)
def test_a_name_that_is_near_to_none_is_an_error_with_what_there_is(line: str, word: str, trawl: Trawl) -> None:
    one_line(trawl(*line.split()), 2, "'nope': there are ", word)


def test_who_is_known_from_redis_or_the_database_alone_is_not_refused(
    trawl: Trawl, redis_client: redis.Redis, tmp_path: Path
) -> None:
    redis_client.rpush(CrawlKeys.for_spider("books").items, b"{}")
    assert trawl("dead", "books").code == 0
    redis_client.rpush("old:requests", b"x")
    said = trawl("migrate", "scrapy-redis", "old", "--watch", "0", "--order", "fifo")
    assert "unknown spider" not in said.err
    with Database.from_url(f"sqlite:///{tmp_path}/data/trawl.sqlite").open() as database:
        database.write([parse(wire(post(site="removed")))])
    forget(f"sqlite:///{tmp_path}/data/trawl.sqlite")
    assert trawl("history", "forum_detail").out == "No crawler process matches.\n"
    assert trawl("export", "--site", "example").code == 0
    assert trawl("export", "--site", "removed").err.startswith("1 posts")


def test_what_was_meant_is_near_and_the_case_does_not_matter() -> None:
    assert did_you_mean("FORUM_LIST", ["forum_list", "x"]) == "; did you mean 'forum_list'?"
    assert did_you_mean("warnin", ["WARNING"]) == "; did you mean 'WARNING'?"
    assert did_you_mean("zzz", ["forum_list"]) == ""
    assert did_you_mean("a", []) == ""
    assert str(unknown_name("site", "x" * 500, [])) == f"unknown site 'x{'x' * 98}: there are none"
