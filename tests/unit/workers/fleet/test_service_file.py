"""Services as a file declares them: what is read, and what is said about a wrong file."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
import redis

from redis_components.errors import ConfigError
from workers.fleet.sizes import as_declared, default_fleet, desired_fleet, services_in_file
from workers.process.memory import private_memory
from workers.process.options import CrawlerOptions, handed_over, own_options, parse, received
from workers.state.registry import Registry, Slot, SlotStory
from workers.state.services import ServiceRecord, Services

BOOKS = '[services.books]\nproject = "shop.settings"\nspider = "shop_books"\nsize = 3\n'


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "trawl.toml"
    monkeypatch.setenv("TRAWL_CONFIG", str(path))
    for name in ("TRAWL_FLEET", "TRAWL_NODE_CRAWLERS"):
        monkeypatch.delenv(name, raising=False)
    path.write_text(BOOKS)
    return path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[services.books", "is not TOML"),
        ("[service.books]", "service: unknown; .*did you mean 'services'"),
        ("services = 3", r"services: must be a table, as \[services.NAME\]"),
        ("services.books = 3", r"services.books: must be a table, as \[services.NAME\]"),
        ("[services.books]\nspidr = 'x'", "services.books.spidr: unknown; .*did you mean 'spider'"),
        ("[services.books]\nsize = 'two'", "services.books.size: expected `int`"),
        ("[services.books]\nsize = 1001", "services.books.size: expected `int` <= 1000"),
        ("[services.books]\nmemory_soft_mb = -1", "services.books.memory_soft_mb: expected `float` > 0"),
        ("[services.books]\nmemory_soft_mb = 9\nmemory_hard_mb = 5", "memory_soft_mb: 9 is more than memory_hard_mb, 5"),
        ("[services.books]\nproject = 'shop/settings.py'", "services.books.project: .* is not a module"),
        ("[services.books]\nconsumer = 'forum_writr'", "services.books.consumer: .*did you mean 'forum_writer'"),
        ("[services.books]\nconsumer = 'http://me:word@h/x'", r"consumer: 'http://me:\*\*\*@h/x' is not none"),
        ("[services.books]\nconsumer = 'http://me:wo/rd@h/x?key=1'", r"consumer: 'http://me:\*\*\*@h/x' is not none"),
        ("[services.'a b']\nsize = 1", "cannot be the name of a service"),
    ],
)
def test_a_wrong_file_is_one_line_with_file_key_and_fix(file: Path, text: str, said: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError, match=f"^{file}(, line [1-3])?: .*{said}"):
        services_in_file()


def test_a_named_file_that_is_missing_is_said(file: Path) -> None:
    file.unlink()
    with pytest.raises(ConfigError, match=r"TRAWL_CONFIG=.* there is no such file"):
        default_fleet()


def test_run_time_wins_over_the_file_and_the_file_over_trawl_fleet(
    file: Path, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry, services = Registry(redis_client), Services(redis_client)
    assert desired_fleet(registry) == {"books": 3}
    monkeypatch.setenv("TRAWL_FLEET", "books=9,notes=40")
    assert desired_fleet(registry) == {"books": 3, "notes": 40}
    services.declare("books", ServiceRecord(size=2))
    services.declare("late", ServiceRecord(spider="books"))
    assert desired_fleet(registry) == {"books": 2, "notes": 40, "late": 1}
    registry.set_desired("late", 5)
    assert desired_fleet(registry)["late"] == 5, "what was scaled wins over every declaration"
    assert services.remove("late")
    assert not services.remove("late")
    assert desired_fleet(registry) == {"books": 2, "notes": 40}


def test_a_crawler_is_launched_as_declared(file: Path, redis_client: redis.Redis) -> None:
    file.write_text(
        f'{BOOKS}arguments = {{ category = "x", deep = true }}\nsettings = {{ DOWNLOAD_DELAY = 0.5 }}\nmax_pages = 100\n'
        'consumer = "jsonl:books.jsonl"\nstart_key = "feed"\n'
    )
    options = as_declared(redis_client, CrawlerOptions(spider="books"))
    assert (options.project, options.loads, options.consumer) == ("shop.settings", "shop_books", "none")
    assert options.arguments == {"category": "x", "deep": "true"}
    assert options.settings == {"CRAWLER_MAX_PAGES": "100", "REDIS_START_URLS_KEY": "feed", "DOWNLOAD_DELAY": "0.5"}
    slot = Slot(spider="books", number=3, token=7, owner="n@h")
    options = replace(options, slot=slot, node="n@h", parent=1, pulse_fd=8, job_of="books", story=SlotStory(restarts=2))
    with handed_over(options) as (line, descriptor):
        assert not {"category", "DOWNLOAD_DELAY"} & set(" ".join(line).replace("=", " ").split()), "nobody sees them"
        there = parse(line)
        assert (there.slot, there.parent) == (slot, 1), "another process's command line is read without its memory"
        assert received(os.dup(descriptor)) == options
    assert as_declared(redis_client, CrawlerOptions(spider="other")) == CrawlerOptions(spider="other")


def test_a_supervisor_of_the_version_before_launches_a_crawler_of_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a node's files are replaced while it runs: 49295b45 writes all options but two on the line."""
    memory = private_memory("trawl-test")
    os.write(memory, b'[{"category":"x"},{"DOWNLOAD_DELAY":"0.5"}]')
    line = (
        "books-1 --slot 3 --token 7 --node=n@h --parent=1 --pulse-fd=8 --page-fd=9 --loads=shop_books --consumer=none "
        '--job-of=books --owner=o --log-file=/logs/b --story={"restarts":2,"last_exit":null,"quick_ends":1,"failed_configs":[]}'
    )
    monkeypatch.setattr("sys.argv", ["crawler", *line.split(), f"--given-fd={memory}"])
    assert own_options() == CrawlerOptions(
        spider="books-1", arguments={"category": "x"}, settings={"DOWNLOAD_DELAY": "0.5"}, loads="shop_books", consumer="none",
        job_of="books", slot=Slot(spider="books-1", number=3, token=7, owner="n@h"), node="n@h", parent=1, pulse_fd=8, page_fd=9,
        owner="o", log_file="/logs/b", story=SlotStory(restarts=2, quick_ends=1),
    )  # fmt: skip
