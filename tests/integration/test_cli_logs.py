"""`trawl logs` on files of this machine, and what it says of crawlers that are elsewhere."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pytest
import redis

from cli.main import main
from workers.state.registry import CrawlerRecord, CrawlerState, Registry


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


def test_a_slot_on_another_node_is_said_to_be_there(redis_client: redis.Redis, capsys: pytest.CaptureFixture[str]) -> None:
    registry = Registry(redis_client)
    for number in (0, 3):
        slot = registry.acquire("list", number, "detail@far")
        assert slot is not None
        record = CrawlerRecord(
            spider="list", number=number, pid=2**22 + 1, node="detail@far", state=CrawlerState.RUNNING, token=slot.token
        )
        assert registry.renew(slot, record).held
    assert main(["logs", "list/3"]) == 1
    assert "list/3 runs on detail@far: its log is there" in capsys.readouterr().err
    assert main(["logs", "list/0", "-n", "1"]) == 0  # it was here once
    shown = capsys.readouterr()
    assert shown.out.endswith("fifth\n")
    assert "list/0 runs on detail@far" in shown.err


def test_without_any_log_it_says_where_it_has_looked(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in logs.iterdir():
        path.unlink()
    assert main(["logs"]) == 1
    assert f"no log of crawlers in {logs}; there are: none" in capsys.readouterr().err
