"""Log records of a worker as JSON, and its crawlers' lines among them."""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path

import pytest

from workers.logs import worker_log as own_identity
from workers.logs.slot_log import SlotLog
from workers.logs.worker_log import JsonFormatter, LogStream, identify


@pytest.fixture(autouse=True)
def identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_identity, "_identity", {})
    identify(program="worker", node="n1")


def record(message: str, *arguments: object, exc_info: object = None) -> logging.LogRecord:
    made = logging.LogRecord("celery.worker", logging.ERROR, __file__, 1, message, arguments, exc_info)  # type: ignore[arg-type]
    made.created = 1795392000.25
    return made


def test_a_line_names_its_process() -> None:
    assert json.loads(JsonFormatter().format(record("error at %s", "task"))) == {
        "time": "2026-11-23T00:00:00.250Z",
        "level": "ERROR",
        "logger": "celery.worker",
        "message": "error at task",
        "pid": os.getpid(),
        "program": "worker",
        "node": "n1",
    }


def test_text_of_others_stays_in_its_line_and_acts_on_no_terminal() -> None:
    try:
        raise ValueError('\x1b[2Jgone\n{"level":"INFO"}\udc80\u202e')
    except ValueError:
        line = JsonFormatter().format(record("of %s", "a\nb", exc_info=sys.exc_info()))
    assert line.isprintable()
    assert "ValueError: \\x1b[2Jgone" in json.loads(line)["exception"]


def test_a_worker_passes_on_its_crawlers_lines_with_their_slot(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("TRAWL_LOG_STREAM", "info")
    log = SlotLog.of("books", 0, folder=lambda: tmp_path)
    fd = log.open()
    stream = LogStream(log, "books/0")
    stream.new_process(4711)
    os.write(fd, b"2026-01-02 03:04:05 WARNING spider: slow\nlast words of C\n")
    stream.close()
    os.close(fd)
    lines = [json.loads(JsonFormatter().format(one)) for one in caplog.records]
    named = ("crawler", "n1", "books", "books/0", 4711)
    assert [tuple(line[name] for name in ("program", "node", "service", "slot", "pid")) for line in lines] == [named] * 2
    assert [line["message"] for line in lines] == ["[books/0 4711] spider: slow", "[books/0 4711] last words of C"]
