"""Files of a run: the same rows as by `scrapy crawl -O`, each once, whatever dies in between."""

from __future__ import annotations

import csv
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import redis

from fleet_operations.consumers import run_files
from fleet_operations.consumers.consume import consume
from fleet_operations.consumers.parts import FolderPlace, Place, place_of, put_text
from fleet_operations.consumers.run_files import FilesOrder, MemberOrder, RunConsumer, RunFiles, end_member, prune
from redis_components.embedded.die_with_parent import tied
from redis_components.errors import ConfigError
from tests.support import warm_start
from workers.state.group_runs import GroupRun, GroupRuns, Member, RunState, Verdict

PROJECT = """
import scrapy


class Book(scrapy.Item):
    url = scrapy.Field()
    price = scrapy.Field(serializer=lambda value: f"{value} EUR")
    tags = scrapy.Field()


class Note(scrapy.Item):
    text = scrapy.Field()


class Books(scrapy.Spider):
    name = "books"
    start_urls = ["data:,"]

    def parse(self, response):
        yield Book(url="a", price=1.5, tags=["x", "y"])
        yield Book(url="b", price=None)
        yield Note(text="é")
"""
SETTINGS = """
SPIDER_MODULES = ["spiders"]
FEEDS = {"feeds/%(name)s-books.csv": {"format": "csv", "item_classes": ["spiders.Book"], "fields": ["url", "price"]}}
TELNETCONSOLE_ENABLED = False
"""
ENDS = """
import os

from scrapy.exporters import CsvItemExporter


class Ends(CsvItemExporter):
    def export_item(self, item):
        if "books" in self.stream.name:
            os._exit(3)
        super().export_item(item)
"""
ITEMS = [
    ("spiders:Book", {"url": "a", "price": 1.5, "tags": ["x", "y"]}),
    ("spiders:Book", {"url": "b", "price": None}),
    ("spiders:Note", {"text": "é"}),
]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "spiders.py").write_text(PROJECT)
    (tmp_path / "shop_settings.py").write_text(SETTINGS)
    monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "shop_settings")
    monkeypatch.setenv("TRAWL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(run_files, "subprocess", SimpleNamespace(Popen=forked))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def line(kind: str, item: dict[str, Any], spider: str = "books") -> bytes:
    return msgspec.json.encode({"spider": spider, "class": kind, "item": item})


def make(**changed: Any) -> str:
    """Make the files, and return what the process reports."""
    members = changed.pop("members", [MemberOrder(spider="books", module="spiders")])
    order = FilesOrder(run=GroupRun(id="g-1", group="g", files="out", **changed), members=members)
    command = [sys.executable, "-m", "fleet_operations.consumers.member_files"]
    done = warm_start.run(command, input=msgspec.json.encode(order), capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stderr.decode()


def test_files_have_the_rows_of_a_plain_crawl(project: Path) -> None:
    plain = [sys.executable, "-m", "scrapy.cmdline", "crawl", "books"]
    for file in ("plain.csv", "plain.jsonl"):
        plain += ["-O", f"{file}:{'jsonlines' if file.endswith('l') else 'csv'}"]
    warm_start.run(plain, check=True, capture_output=True, timeout=60)
    feed = project / "feeds" / "books-books.csv"
    for ending, form in (("jsonl", "jsonlines"), ("csv", "csv"), ("parquet", "parquet")):
        if form == "parquet":
            pytest.importorskip("pyarrow")
        by_crawl = feed.read_text() if feed.exists() else ""
        feed.unlink(missing_ok=True)
        put_text(place_of("out"), "g/g-1/.parts/books/items/1.jsonl", b"\n".join(line(*one) for one in ITEMS))
        assert "Traceback" not in make(format=form)
        whole = project / "data" / "out" / "g" / "g-1" / f"books.{ending}"
        assert whole.exists()
        if form == "jsonlines":
            assert whole.read_text() == (project / "plain.jsonl").read_text()
            assert feed.read_text() == by_crawl == "url,price\na,1.5 EUR\nb,None EUR\n".replace("\n", feed_newline(by_crawl))
        elif form == "csv":
            rows, plain_rows = rows_of(whole), rows_of(project / "plain.csv")
            assert [{name: row[name] for name in plain_rows[0]} for row in rows] == plain_rows
            assert rows[2]["text"] == "é", "a field of a later item is not lost"
        else:
            from pyarrow import parquet

            assert parquet.read_table(whole).column("url").to_pylist() == ["a", "b", None]


def feed_newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_an_exporter_that_raises_costs_no_other_member_and_no_item(project: Path) -> None:
    (project / "shop_settings.py").write_text(f'{SETTINGS}\nFEED_EXPORTERS = {{"csv": "spiders.NoSuch"}}\n')
    put_text(place_of("out"), "g/g-1/.parts/books/items/1.jsonl", line(*ITEMS[0]))
    assert "NoSuch" in make()
    assert make(members=[MemberOrder(spider="books", plain=True)]) == ""
    folder = project / "data" / "out" / "g" / "g-1"
    assert json.loads((folder / "books.jsonl").read_text()) == ITEMS[0][1]
    assert json.loads((folder / ".parts" / "books" / "done.json").read_text())["error"]


def forked(command: list[str], **options: Any) -> warm_start.Popen:
    """A process that makes files, not tied to this one: it is forked, and one that starts cold takes 0.7 s of CPU."""
    return warm_start.Popen(command[len(tied()) :], **options)


class Dead(Exception):
    """The consumer's process is killed here."""


@contextmanager
def run_of(client: redis.Redis, **changed: Any) -> Iterator[GroupRun]:
    values: dict[str, Any] = {"id": "g-20261129T030000", "group": "g", "members": 1, "files": "out", "key": "url"}
    run = GroupRun(**{**values, **changed})
    assert GroupRuns(client).add(run, {"books": "spiders"})
    yield run


@pytest.mark.usefixtures("project")
def test_a_consumer_that_dies_at_each_of_its_steps_doubles_and_loses_no_item(
    redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with run_of(redis_client, key="") as run:
        declared = RunConsumer(run=run.id, group="g", files="out", in_file=True)
        stream = declared.stream(redis_client)
        runs = GroupRuns(redis_client)
        items = [{"url": f"{n}"} for n in range(40)]
        redis_client.rpush(stream.keys.item_stream(), *(line("", one) for one in items))
        end_member(redis_client, run, ["books"])
        end_member(redis_client, run, ["books"])  # the step of the run was taken twice
        runs.end(run, [Member(spider="books", verdict=Verdict.FINE, items=40)])
        over = next(iter(runs.all().values()))
        assert runs.swap(replace(over, state=RunState.FINISHED, ended_at=1.0, counts={"fine": 1}))

        def dies(*_: Any, **__: Any) -> None:
            raise Dead

        for step in ("settle", "_finish"):
            sink = declared.open(redis_client)
            sink._within_s = 0.0
            with monkeypatch.context() as death:
                death.setattr(stream if step == "settle" else sink, step, dies)
                with pytest.raises(Dead):
                    consume(stream, sink, stopped=lambda: False)
        sink = declared.open(redis_client)
        sink._within_s = 0.0
        until = time.monotonic() + 60
        consume(stream, sink, stopped=lambda: runs.all()[run.id].stored_at is not None or time.monotonic() > until)
        folder = tmp_path / "data" / "out" / "g"
        rows = [json.loads(one) for one in (folder / run.id / "books.jsonl").read_text().splitlines()]
        assert sorted(rows, key=str) == sorted(items, key=str)
        manifest = json.loads((folder / "latest" / "manifest.json").read_text())
        assert manifest["members"][0]["rows"] == 40
        assert not (folder / run.id / ".parts").exists()


def test_an_exporter_that_ends_its_process_costs_its_member_the_format_and_no_other_one(
    project: Path, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "spiders.py").write_text(f"{PROJECT}\n\nclass Others(Books):\n    name = 'others'\n\n{ENDS}")
    (project / "shop_settings.py").write_text(f'{SETTINGS}\nFEED_EXPORTERS = {{"csv": "spiders.Ends"}}\n')
    monkeypatch.setattr(run_files, "AGAIN_S", 0.0)
    run = GroupRun(id="g-1", group="g", members=2, files="out", format="csv")
    assert GroupRuns(redis_client).add(run, {"books": "spiders", "others": "spiders"})
    for spider in ("books", "others"):
        put_text(place_of("out"), f"g/g-1/.parts/{spider}/items/1.jsonl", line("", {"url": "a"}, spider))
        put_text(place_of("out"), f"g/g-1/.parts/{spider}/ended", b"")
    sink, until = RunFiles(redis_client, run), time.monotonic() + 60
    while len(sink._done) < 2 and time.monotonic() < until:
        sink.tick()
        if sink._making is not None:
            sink._making.wait()
    folder = project / "data" / "out" / "g" / "g-1"
    assert (folder / "books.jsonl").read_text() == '{"url":"a"}\n'
    assert (folder / "others.csv").exists()


@pytest.mark.usefixtures("project")
def test_copies_of_a_page_are_one_row_where_items_have_a_key() -> None:
    lines = [
        line("", {"url": "a"}),
        line("", {"url": "b"}),
        line("", {"url": "a"}),
        line("", {"no": "url"}),
        line("", {"no": "url"}),
    ]
    put_text(place_of("out"), "g/g-1/.parts/books/items/1.jsonl", b"\n".join(lines))
    make(key="url", format="jsonl")
    done = json.loads(b"".join(place_of("out").lines("g/g-1/.parts/books/done.json")))
    assert done["rows"] == 4


def check_retention(place: Place) -> None:
    for number in range(6):
        put_text(place, f"g/g-2026110{number + 1}T000000/manifest.json", b"{}")
    put_text(place, "g/g-20261109T000000/.parts/books/items/1.jsonl", b"")
    put_text(place, "g/others/manifest.json", b"{}")
    run = GroupRun(id="g-20261106T000000", group="g", keep_runs=4, keep_days=3)
    prune(place, run, 1_793_923_200.0)  # 2026-11-06
    assert place.folders("g") == ["g-20261104T000000", "g-20261105T000000", "g-20261106T000000", "g-20261109T000000", "others"]


def test_files_of_old_runs_go_and_what_is_not_a_whole_run_stays(tmp_path: Path) -> None:
    check_retention(FolderPlace(tmp_path))


def test_a_place_that_only_redis_names_is_in_the_data_folder(project: Path) -> None:
    for files in ("/etc/x", "../x", "s3://shop/x"):
        with pytest.raises(ConfigError):
            _ = RunConsumer(run="g-1", group="g", files=files, in_file=False).target
    assert RunConsumer(run="g-1", group="g", files="out", in_file=False).target.path == project / "data" / "out" / "g"
