"""The turns of crawls in one process: which one it takes, and when it ends."""

from __future__ import annotations

import importlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from workers.crawler import turns as module
from workers.crawler.turns import Turns
from workers.process.exit_kinds import ExitKind
from workers.process.options import CrawlerOptions, handed_over
from workers.process.pipes import StopSignals

MEMBER = CrawlerOptions(spider="books.r1", settings={"RUN_ID": "r1"}, log_file="/dev/null")
RESTS = b"end finished\nrests\n"


class Process:
    """The turns of this process, and its supervisor's ends of socket and pipe."""

    def __init__(self) -> None:
        self.orders, its = socket.socketpair()
        self.pulse, write = os.pipe()
        self.turns = Turns(its.detach(), write)
        self.write = write

    def order(self, options: CrawlerOptions) -> None:
        with handed_over(options) as (_, file):
            socket.send_fds(self.orders, [b"\0"], [file])


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[Process]:
    monkeypatch.setattr(StopSignals, "listen", lambda _: None)
    monkeypatch.setattr(module, "_log_to", lambda _: None)
    monkeypatch.setattr(module, "_at_work", lambda: iter(()))  # the threads of pytest are no crawl's
    one = Process()
    yield one
    one.orders.close()
    one.turns._orders.close()
    for descriptor in (one.pulse, one.write):
        os.close(descriptor)


def test_a_process_that_has_finished_reports_that_it_rests_and_takes_the_next_crawl(process: Process) -> None:
    for number in range(2):
        following = CrawlerOptions(spider=f"shelves{number}.r1", settings={"RUN_ID": "r1", "LONG": "x" * 50_000})
        process.order(following)
        assert process.turns.after(MEMBER, ExitKind.FINISHED) == following
        assert not process.turns.rests
        assert os.read(process.pulse, 100) == RESTS


def test_a_crawl_that_comes_too_late_has_not_begun(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REST_S", 0.0)
    assert process.turns.after(MEMBER, ExitKind.FINISHED) is None
    process.order(MEMBER)
    assert process.turns.rests, "it leaves as aborted: the supervisor that has sent the crawl begins it again"


def test_a_process_ends_with_its_supervisor(process: Process) -> None:
    process.orders.close()
    assert process.turns.after(MEMBER, ExitKind.FINISHED) is None


@pytest.mark.parametrize(
    ("options", "kind"),
    [(MEMBER, ExitKind.CRASHED), (MEMBER, ExitKind.RECYCLED), (CrawlerOptions(spider="books"), ExitKind.FINISHED)],
    ids=["it crashed", "its limit is reached", "it is no member"],
)
def test_others_get_no_further_crawl(process: Process, options: CrawlerOptions, kind: ExitKind) -> None:
    process.order(MEMBER)
    assert process.turns.after(options, kind) is None
    assert not process.turns.rests


@pytest.mark.parametrize(
    ("limit", "value"), [("MOST_CRAWLS", 1), ("MOST_AGE_S", -1.0), ("MOST_MEMORY_BYTES", -1), ("MOST_FILES", -1)]
)
def test_an_old_or_large_process_ends(process: Process, monkeypatch: pytest.MonkeyPatch, limit: str, value: float) -> None:
    monkeypatch.setattr(module, limit, value)
    process.order(MEMBER)
    assert process.turns.after(MEMBER, ExitKind.FINISHED) is None
    assert not process.turns.rests


def test_a_changed_file_of_the_project_ends_it(process: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "turned_project.py"
    file.write_text("one = 1\n")
    importlib.import_module("turned_project")
    process.order(MEMBER)
    assert process.turns.after(MEMBER, ExitKind.FINISHED) == MEMBER
    file.write_text("one = 1_000\n")
    process.order(MEMBER)
    assert process.turns.after(MEMBER, ExitKind.FINISHED) is None
