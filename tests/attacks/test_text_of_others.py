"""Attack: a page, a key in Redis or an exception says something that a terminal, a log or a spreadsheet would obey."""

from __future__ import annotations

import csv
import io
import json
import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from cli.main import main
from cli.views.output import complain, echo, print_json
from cli.views.tables import console, table_of
from forums.state.keys import ForumState, ForumStates
from forums.storage import Database, parse
from forums.storage.read.export import export as write_rows
from redis_components.server.printable import SafeRecord, in_json, log_entry, printable
from tests.support import warm_start
from tests.support.fleet import ROOT
from tests.support.items import post, wire
from workers.logs.slot_log import LineReader, LogLimits, SlotLog, last_lines, last_words
from workers.state.registry import Registry

HOSTILE = {
    "title of the window": "\x1b]0;PWNED\x07",
    "clear the screen": "\x1b[2J\x1b[H",
    "clipboard": "\x1b]52;c;cm0gLXJmIC8=\x07",
    "C1 introducer": "\x9b31m",
    "C1 string": "\x90q\x9c",
    "overwrite": "bad\rgood",
    "backspaces": "bad\b\b\bgood",
    "delete": "a\x7fb",
    "bidi override": "\u202etxt.exe\u202c",
    "bidi isolate": "\u2067abc\u2069",
    "NUL": "a\0b",
}
ACTS = [*map(chr, (*range(9), *range(11, 32), *range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A)))]
MARKUP = ["[/red]oops", "[link=http://evil.example]click[/link]", "[bold]", "[/]", ":smile:", "\\[x]", "[@click=app.bell()]x[/]"]
FORGED = "2026-01-02 03:04:05 ERROR scrapy.core.engine: forged"


def acts_on_a_terminal(text: str) -> list[str]:
    """The characters in it that a terminal would obey."""
    return [sign for sign in ACTS if sign in text]


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_nothing_that_is_printed_acts(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    table = table_of([text], {"name": str})
    console().print(table, text)
    echo(text)
    complain(text)
    print_json({"title": text, text: 1})
    said = capsys.readouterr()
    assert acts_on_a_terminal(said.out + said.err) == []
    assert json.loads(said.out.splitlines()[-1]) == {"title": text, text: 1}, "a program gets the value as it is"


def test_a_lone_surrogate_is_shown_and_does_not_make_printing_fail(capsys: pytest.CaptureFixture[str]) -> None:
    echo("a\ud800b")
    print_json("a\ud800b")
    out = capsys.readouterr().out
    out.encode()
    assert out == 'a\\ud800b\n"a\\ud800b"\n'


@pytest.mark.parametrize("text", MARKUP)
def test_text_in_brackets_is_no_markup(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    table = table_of([text], {"name": str})
    console().print(table)
    console().print(text)
    assert capsys.readouterr().out.count(text) == 2


def test_printing_twice_what_was_made_printable_changes_nothing() -> None:
    for text in (*HOSTILE.values(), f"a\n{FORGED}\n  more"):
        assert printable(printable(text)) == printable(text)
        assert log_entry(log_entry(text)) == log_entry(text)
        assert json.loads(in_json(json.dumps(text, ensure_ascii=False))) == text


@pytest.mark.parametrize("text", [*MARKUP[:2], "\x1b]0;PWNED\x07", "\u202ereversed"])
@pytest.mark.parametrize("command", [["forums"], ["status"], ["status", "--json"], ["forums", "--json"]], ids=" ".join)
def test_a_hostile_forum_does_not_break_the_screen_of_all_sites(
    text: str,
    command: list[str],
    redis_url: str,
    redis_client: redis.Redis,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)
    monkeypatch.setenv("TRAWL_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    states = ForumStates(redis_client)
    states.write({"evil/1": ForumState(name=text, errors=1, reason=text), "good/1": ForumState(name="Innocent")})
    states.store_dues({"evil/1": 1.0, "good/1": time.time() + 60}, time.time(), whole=True)
    Registry(redis_client).report_error(f"crawler {text}", f"the page said {text}")
    code = main(command)
    said = capfd.readouterr()
    assert (code, said.err) == (int("status" in command), ""), "no crawler is alive"
    assert acts_on_a_terminal(said.out) == []
    if command[0] == "forums":
        assert "Innocent" in said.out


def entries(text: str) -> list[str]:
    """The entries of a log, by the readers of `trawl logs`."""
    reader = LineReader()
    return [line.text for line in map(reader.read, text.splitlines()) if line.head]


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
@pytest.mark.parametrize("where", ["message", "exception"])
def test_no_page_can_forge_an_entry_of_a_log(end: str, where: str) -> None:
    title = f"harmless{end}{FORGED}\x1b[2J"
    try:
        raise ValueError(title)
    except ValueError:
        failure = sys.exc_info()
    told = SafeRecord(
        "spider",
        logging.INFO,
        __file__,
        1,
        "read %s",
        (title,) if where == "message" else ("a page",),
        failure if where == "exception" else None,
    )
    written = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s").format(told)
    assert len(entries(written)) == 1
    assert acts_on_a_terminal(written) == []
    assert "forged" in written, "nothing is left out"


def test_a_crawler_and_a_worker_log_safe_records() -> None:
    """In processes of their own: the factory is the whole process's."""
    factory = "print(logging.getLogRecordFactory().__name__)"
    for program in (
        "import sys, workers.crawler.__main__ as c; sys.argv=['x']; import logging\n"
        "try: c.main(c.CrawlerOptions(spider='no-such-spider'))\nexcept BaseException: pass\n",
        "import tasks, logging; from celery.signals import celeryd_init\n"
        "celeryd_init.send(sender='x', instance=None, conf=None, options={})\n",
        "import tasks, logging; from celery.signals import beat_init\nbeat_init.send(sender=None)\n",
    ):
        command = [sys.executable, "-c", f"import logging\n{factory}\n{program}{factory}"]
        told = warm_start.run(command, family="celery", cwd=ROOT, capture_output=True, text=True, timeout=60)
        words = told.stdout.splitlines()
        assert (words[0], words[-1]) == ("LogRecord", "SafeRecord"), told.stderr


def test_a_log_that_others_have_written_has_the_lines_that_newlines_end(tmp_path: Path) -> None:
    log = SlotLog(tmp_path / "forum_list-0.log", LogLimits())
    log.path.write_text(f"2026-01-01 00:00:00 INFO a: title\u2028{FORGED}\x0b{FORGED}\n")
    assert len(last_lines(log, 10)) == 1
    assert len(last_words(log, 10)) == 1


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """Posts whose title, author and body are hostile."""
    title = '=HYPERLINK("http://evil.example","pay")'
    items = [
        parse(wire(post(id="p1", title=title, body="\x1b]0;PWNED\x07\x9b31m\u202e text", author="@SUM(1+1)"))),
        parse(wire(post(id="p2", title="-1+1|cmd", body="\tx", author="plain"))),
    ]
    with Database.from_url(f"sqlite:///{tmp_path}/trawl.sqlite") as database:
        database.write(items)
        yield database


def test_cells_of_a_csv_are_not_computed(database: Database) -> None:
    out = io.BytesIO()
    write_rows(database, "posts", "csv", out)
    rows = {row["id"]: row for row in csv.DictReader(io.StringIO(out.getvalue().decode(), newline=""))}
    cells = [rows["p1"]["title"], rows["p1"]["author"], rows["p2"]["title"], rows["p2"]["body"]]
    assert all(cell.startswith("'") for cell in cells)
    assert acts_on_a_terminal(out.getvalue().decode()) == []
    assert rows["p2"]["author"] == "plain"


def test_json_lines_keep_the_values_and_do_not_act(database: Database) -> None:
    out = io.BytesIO()
    write_rows(database, "posts", "jsonl", out)
    assert acts_on_a_terminal(out.getvalue().decode()) == []
    first = json.loads(out.getvalue().splitlines()[0])
    assert (first["body"], first["author"]) == ("\x1b]0;PWNED\x07\x9b31m\u202e text", "@SUM(1+1)")
