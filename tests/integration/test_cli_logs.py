"""`trawl logs` on files of this machine, and what it says of crawlers that are elsewhere."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pytest

from cli.main import main


@cache
def now() -> datetime:
    """The moment of the first test, not of the import: a run of all tests takes longer than the lines are apart."""
    return datetime.now().astimezone()


def stamp(minutes_ago: float) -> str:
    return (now() - timedelta(minutes=minutes_ago)).strftime("%Y-%m-%d %H:%M:%S")


@pytest.fixture(autouse=True)
def logs(tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder, with the logs of two slots, one of them rotated."""
    monkeypatch.setenv("TRAWL_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "list-0.log.1").write_text(f"{stamp(90)} INFO a: first\n{stamp(80)} ERROR a: broken\nTraceback\n  File\n")
    (folder / "list-0.log").write_text(f"{stamp(10)} INFO a: third\n{stamp(5)} WARNING a: fifth\n")
    (folder / "detail-1.log").write_text(f"{stamp(20)} DEBUG b: second\n{stamp(7)} INFO b: fourth\n")
    return folder


def lines(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main(["logs", *words]) == 0
    return [line.rpartition(": ")[2] for line in capsys.readouterr().out.splitlines()]


def test_lines_of_all_slots_come_in_the_order_of_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(capsys)[4:] == ["second", "third", "fourth", "fifth"]
    assert lines(capsys, "-n", "2") == ["fourth", "fifth"]
    assert lines(capsys, "detail") == ["second", "fourth"]
    assert lines(capsys, "-n", "0") == []


def test_lines_are_chosen_by_time_and_level_and_an_entry_stays_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(capsys, "--since", "15m") == ["third", "fourth", "fifth"]
    assert lines(capsys, "--level", "warning") == ["broken", "list/0 │ Traceback", "list/0 │   File", "fifth"]
    assert lines(capsys, "list/0", "--level", "ERROR") == ["broken", "Traceback", "  File"]
    assert main(["logs", "list/0", "-n", "1", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    at = datetime.fromisoformat(stamp(5)).astimezone(UTC).isoformat().replace("+00:00", "Z")
    assert said == {"slot": "list/0", "at": at, "level": "WARNING", "text": f"{stamp(5)} WARNING a: fifth"}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nix"], 1, "no log of nix in"),
        (["list/7"], 1, "there are: detail/1, list/0"),
        (["list/x"], 2, "neither a service nor a slot"),
        (["--level", "LOUD"], 2, "--level 'LOUD' is unknown"),
        (["--since", "soon"], 2, "--since 'soon' is not a time"),
    ],
)
def test_what_cannot_be_shown_is_one_line(words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", *words]) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert said in shown.err
    assert len(shown.err.splitlines()) == 1


def test_without_any_log_it_says_where_it_has_looked(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in logs.iterdir():
        path.unlink()
    assert main(["logs"]) == 1
    assert f"no log of crawlers in {logs}; there are: none" in capsys.readouterr().err


SCRAPYS = """{at} INFO scrapy.addons: Enabled addons:
  []
{at} INFO scrapy.middleware: Enabled extensions:
  ['scrapy.extensions.corestats.CoreStats',
 'scrapy.extensions.logstats.LogStats']
{at} INFO scrapy.crawler: Overridden settings:
  {{'RETRY_EXCEPTIONS': ['scrapy.exceptions.DownloadTimeoutError',
                      <class 'OSError'>]}}
{at} [scrapy.statscollectors] INFO: Dumping Scrapy stats:
{{'downloader/request_count': 3}}
{at} INFO scrapy.extensions.logstats: Crawled 68 pages (at 0 pages/min), scraped 665 items (at 0 items/min)
{at} INFO scrapy.extensions.logstats: Crawled 80 pages (at 12 pages/min), scraped 665 items (at 0 items/min)
{at} INFO scrapy.core.engine: Spider opened
"""


def test_scrapys_lists_are_left_out_and_times_have_their_zone(
    logs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    try:
        (logs / "shop-0.log").write_text(SCRAPYS.format(at="2026-01-02 03:04:05"))
        assert main(["logs", "shop/0"]) == 0
        said = capsys.readouterr().out.splitlines()
        assert main(["logs", "shop/0", "-n", "1", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["at"] == "2026-01-01T19:04:05Z"
    finally:
        monkeypatch.undo()
        time.tzset()
    assert said == [
        "2026-01-01 19:04:05Z INFO scrapy.extensions.logstats: Crawled 80 pages (at 12 pages/min), scraped 665 items"
        " (at 0 items/min)",
        "2026-01-01 19:04:05Z INFO scrapy.core.engine: Spider opened",
    ]
