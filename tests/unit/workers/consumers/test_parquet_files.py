"""Items in Parquet files: their types, their rotation, and every state in which a killed process can leave the folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from redis_components.errors import ConfigError
from workers.consumers.consume import Item, Sink
from workers.consumers.targets import SinkOptions, parse_target


def batch(*values: Any) -> list[Item]:
    return [Item(place, value) for place, value in enumerate(values)]


def parquet(path: Path, max_bytes: int = 0) -> Sink:
    return parse_target(f"parquet:{path}").open(SinkOptions(table="", max_bytes=max_bytes))


def rows(folder: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq  # not before: it starts a thread, which no fork would have

    return [row for file in sorted(folder.glob("*.parquet")) for row in pq.read_table(file).to_pylist()]


def test_a_column_has_the_type_that_all_its_values_fit_into(tmp_path: Path) -> None:
    sink = parquet(tmp_path / "new folder" / "books.parquet")
    first = {"n": 1, "price": 2, "big": 2**60, "huge": 2**70, "mixed": "x", "tags": ["ü"], "yes": True, "none": None}
    assert sink.write(batch(first, 7, {}, {"price": 2.5, "mixed": 3, "big": 1, "exact": 2**60})) == {
        1: "it is not an object with fields, so it cannot be a row",
        2: "it has no fields",
    }
    sink.write(batch({"exact": 0.5}))
    assert not list(tmp_path.rglob("*.parquet"))
    sink.close()
    absent = dict.fromkeys([*first, "exact"])
    assert rows(tmp_path / "new folder") == [
        {**absent, **first, "price": 2.0, "huge": str(2**70), "tags": '["ü"]'},
        {**absent, "price": 2.5, "mixed": "3", "big": 1, "exact": str(2**60)},
        {**absent, "exact": "0.5"},
    ]


def test_files_are_rotated_by_size_and_never_overwritten(tmp_path: Path) -> None:
    sink = parquet(tmp_path / "books.parquet", max_bytes=10)
    for number in range(5):  # within one second: the same time in their names
        sink.write(batch({"number": number}))
    sink.close()
    assert sorted(row["number"] for row in rows(tmp_path)) == [0, 1, 2, 3, 4]
    assert len(list(tmp_path.glob("books-*.parquet"))) == 5
    assert [file.name for file in tmp_path.iterdir() if file.suffix != ".parquet"] == ["books.journal"]


def test_what_a_killed_process_left_is_finished_by_the_next_one_and_a_neighbours_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "books.journal").write_bytes(b'{"n":3}\n{"n":')  # killed while it wrote
    (tmp_path / "books-20260101T000000.000.journal").write_bytes(b'{"n":1}\n')  # after it was renamed
    (tmp_path / "books-20260101T000000.001.journal").write_bytes(b'{"n":2}\n')  # while it was converted
    (tmp_path / ".books-20260101T000000.001.parquet.tmp").write_bytes(b"PAR1 half")
    neighbour = tmp_path / "books-old.journal"
    neighbour.write_bytes(b'{"n":9}\n')
    sink = parquet(tmp_path / "books.parquet")
    assert sorted(row["n"] for row in rows(tmp_path)) == [1, 2]
    with pytest.raises(ConfigError, match="written by another process"):
        parquet(tmp_path / "books.parquet")
    sink.close()
    assert sorted(row["n"] for row in rows(tmp_path)) == [1, 2, 3]
    assert neighbour.read_bytes() == b'{"n":9}\n'


def test_a_disk_that_refuses_a_parquet_file_stops_no_item(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from workers.consumers import parquet_files

    sink = parquet(tmp_path / "books.parquet", max_bytes=10)
    convert = parquet_files.convert

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parquet_files, "convert", full)
    for number in (1, 2):
        assert sink.write(batch({"number": number})) == {}
    assert len([line for line in caplog.messages if "No space left" in line]) == 1
    monkeypatch.setattr(parquet_files, "convert", convert)
    sink.tick()
    assert sorted(row["number"] for row in rows(tmp_path)) == [1, 2]
    sink.close()


def test_fields_without_end_are_bounded(tmp_path: Path) -> None:
    sink = parquet(tmp_path / "books.parquet")
    from workers.consumers.parquet_files import MOST_COLUMNS

    many = {f"a{n}": n for n in range(MOST_COLUMNS)}
    assert sink.write(batch(many | {"one": 1}, many, {"b": 1})) == {0: "it has 1,001 fields; a Parquet file takes 1,000"}
    sink.close()
    assert sorted(len(row) for row in rows(tmp_path)) == [1, MOST_COLUMNS]


def test_without_pyarrow_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "workers.consumers.parquet_files", raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConfigError, match=r"pip install 'trawl-fleet\[parquet\]'"):
        parquet(tmp_path / "books.parquet")
    assert not list(tmp_path.iterdir())
