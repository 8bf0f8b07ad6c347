"""Log records as JSON, and as `trawl logs` reads them again."""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path

import pytest

from workers.logs import json_lines as own_identity
from workers.logs.follow import LogStream
from workers.logs.json_lines import IDS, JsonFormatter, identify
from workers.logs.slot_log import LineReader, SlotLog, last_words
from workers.process.page_at_work import PageAtWork, fields, reading
from workers.supervision.slot_history import error_line


@pytest.fixture(autouse=True)
def identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_identity, "_identity", {})
    identify(program="crawler", service="books", slot="books/0", job="")


def record(message: str, *arguments: object, exc_info: object = None, **extra: object) -> logging.LogRecord:
    made = logging.LogRecord("scrapy.core.engine", logging.ERROR, __file__, 1, message, arguments, exc_info)  # type: ignore[arg-type]
    made.created = 1795392000.25
    made.__dict__.update(extra)
    return made


def test_a_line_names_who_says_it_and_the_page_that_is_read() -> None:
    with reading(PageAtWork(url="https://books.example/t/1", site="books", kind="thread", forum="f1", thread="1", lease="77")):
        line = JsonFormatter(fields).format(record("spider error at %s", "page"))
    assert json.loads(line) == {
        "time": "2026-11-23T00:00:00.250Z",
        "level": "ERROR",
        "logger": "scrapy.core.engine",
        "message": "spider error at page",
        "pid": os.getpid(),
        "program": "crawler",
        "service": "books",
        "slot": "books/0",
        "site": "books",
        "url": "https://books.example/t/1",
        "kind": "thread",
        "forum": "f1",
        "thread": "1",
        "lease": "77",
    }
    assert "site" not in json.loads(JsonFormatter(fields).format(record("idle")))


def hostile() -> str:
    try:
        raise ValueError('\x1b[2Jgone\n{"level":"INFO"}\udc80\u202e')
    except ValueError:
        return JsonFormatter().format(record("of %s", "a\nb", exc_info=sys.exc_info()))


def test_text_of_others_stays_in_its_line_and_acts_on_no_terminal() -> None:
    line = hostile()
    assert line.isprintable()
    assert "ValueError: \\x1b[2Jgone" in json.loads(line)["exception"]
    read = LineReader().read(line)
    assert all(part.isprintable() for part in read.text.split("\n"))
    assert [part[:1] for part in read.message.split("\n")[1:] if part[:1] != " "] == []  # nothing begins an entry


def test_what_is_written_as_json_is_read_like_text(tmp_path: Path) -> None:
    log = SlotLog.of("books", 0, folder=lambda: tmp_path)
    fd = log.open()
    os.write(fd, f"{hostile()}\n".encode())
    os.close(fd)
    read = LineReader().read(hostile())
    assert (read.level, read.head, read.ids["slot"]) == (logging.ERROR, True, "books/0")
    assert read.message.startswith("scrapy.core.engine: of a")
    assert "ValueError: \\x1b[2Jgone" in (error_line(last_words(log)) or "")


@pytest.mark.parametrize("text", ["{", '{"time":"x","level":"INFO","logger":"","message":""}', '{"a":1}', "[" * 9000])
def test_what_only_looks_like_it_is_text(text: str) -> None:
    assert LineReader().read(text).text == text


def test_a_worker_passes_on_the_fields_of_its_crawlers_lines(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("TRAWL_LOG_STREAM", "info")
    log = SlotLog.of("books", 0, folder=lambda: tmp_path)
    fd = log.open()
    stream = LogStream(log, "books/0")
    stream.new_process(4711)
    with reading(PageAtWork(url="https://books.example/t/1", site="books")):
        os.write(fd, f"{JsonFormatter(fields).format(record('slow'))}\nlast words of C\n".encode())
    stream.stop()
    os.close(fd)
    identify(program="worker", node="n1")
    first, second = (json.loads(JsonFormatter().format(one)) for one in caplog.records)
    assert (first["program"], first["slot"], first["site"], first["pid"]) == ("crawler", "books/0", "books", 4711)
    assert (second["program"], second["slot"], second["pid"]) == ("worker", "books/0", 4711)
    assert getattr(caplog.records[1], IDS) == {"slot": "books/0", "pid": 4711}
