"""Which page is at work, told to others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from workers.process import page_at_work
from workers.process.exit_kinds import Exit, ExitKind
from workers.process.page_at_work import PageAtWork, SharedPage

ROOT = Path(__file__).parents[4]
PAGE = PageAtWork(url="http://forum.example/t/1?q=é", site="books", kind="comments")


@pytest.fixture
def shared() -> SharedPage:
    return SharedPage()


def test_a_page_is_at_work_while_it_is_read_and_not_after(shared: SharedPage, monkeypatch: pytest.MonkeyPatch) -> None:
    with page_at_work.reading(PAGE):
        assert shared.read() is None, "no supervisor looks"
    monkeypatch.setattr(page_at_work, "reading", page_at_work.reading)
    page_at_work.share(shared.descriptor)
    with pytest.raises(ValueError), page_at_work.reading(PAGE):
        assert shared.read() == PAGE
        raise ValueError
    assert shared.read() is None
    shared.close()
    assert str(PAGE) == "reading http://forum.example/t/1?q=é of site books"


@pytest.mark.processes
@pytest.mark.parametrize(("ends", "left"), [("os.kill(os.getpid(), 9)", True), ("pass", False)])
def test_what_a_process_was_reading_when_it_died_is_known(shared: SharedPage, ends: str, left: bool) -> None:
    code = (
        "import os, sys\nfrom workers.process import page_at_work as at_work\nat_work.share(int(sys.argv[1]))\n"
        "with at_work.reading(at_work.PageAtWork(url='http://forum.example/' + 'x' * 9000, site='books')):\n"
        f"    {ends}\n"
    )
    subprocess.run([sys.executable, "-c", code, str(shared.descriptor)], pass_fds=(shared.descriptor,), check=False, cwd=ROOT)
    page = shared.read()
    assert (page is not None) is left
    if page:
        assert (page.site, len(page.url)) == ("books", 1000)
        assert 0 < page.lasted_s < 60
    shared.close()


@pytest.mark.parametrize(
    ("kind", "code", "lasted_s", "blamed"),
    [
        (ExitKind.HUNG, 75, 7.0, True),
        (ExitKind.HUNG, -9, 7.0, True),
        (ExitKind.OUT_OF_MEMORY, 74, 3.0, True),
        (ExitKind.OUT_OF_MEMORY, 74, 0.01, False),
        (ExitKind.KILLED, -11, 0.0, True),
        (ExitKind.KILLED, -9, 9.0, False),
        (ExitKind.CRASHED, 1, 9.0, False),
        (ExitKind.DRAINED, 0, 9.0, False),
    ],
)
def test_a_page_is_blamed_for_ends_that_it_can_cause(kind: ExitKind, code: int, lasted_s: float, blamed: bool) -> None:
    assert kind.blames_page(code, lasted_s) is blamed


def test_the_words_for_people() -> None:
    end = Exit(kind=ExitKind.HUNG, code=75, lived_s=9.0)
    assert end.over(PAGE) == "hung while reading http://forum.example/t/1?q=é of site books"
