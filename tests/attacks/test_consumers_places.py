"""A consumer whose target is declared in Redis writes below the data folder, into no bucket, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from redis_components.errors import ConfigError
from workers.targets import check_place, parse_target


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "link").symlink_to("/")
    monkeypatch.setenv("TRAWL_DATA_DIR", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.mark.parametrize(
    "target",
    [
        *(
            "jsonl:/root/.ssh/authorized_keys",
            "jsonl:../x",
            "jsonl:data/../settings.py",
            "jsonl:data/link/etc/cron.d/x",
            "jsonl:x",
        ),
        *("sqlite:////etc/x", "sqlite:///x.sqlite", "sqlite:///file:/etc/x?uri=true", "sqlite+pysqlite:///data/../x"),
    ],
)
def test_a_file_elsewhere_is_refused(target: str) -> None:
    with pytest.raises(ConfigError, match="outside of the data folder"):
        check_place(parse_target(target))


def test_a_bucket_is_refused() -> None:
    with pytest.raises(ConfigError, match="the login to it is this machine's: nothing was done"):
        check_place(parse_target("s3://shop/books"))


@pytest.mark.parametrize(
    ("target", "place"),
    [
        ("jsonl:books.jsonl", "data/books.jsonl"),
        ("jsonl:out/books.jsonl", "data/out/books.jsonl"),
        ("jsonl:data/books.jsonl", "data/books.jsonl"),
        ("sqlite+pysqlite:///books.sqlite?timeout=3", "data/books.sqlite"),
        ("jsonl:/srv/books.jsonl", "/srv/books.jsonl"),
    ],
)
def test_a_relative_path_of_a_declaration_is_below_the_data_folder(target: str, place: str, tmp_path: Path, data: Path) -> None:
    found = parse_target(target).below(data)
    assert found.path == tmp_path / place
    assert found.place.endswith(("books.jsonl", "books.sqlite?timeout=3"))


@pytest.mark.parametrize("target", ["jsonl:../x", "sqlite:///../x.sqlite", "jsonl:link/etc/x"])
def test_a_relative_path_leads_out_of_the_data_folder_in_no_way(target: str, data: Path) -> None:
    with pytest.raises(ConfigError, match="outside of the data folder"):
        check_place(parse_target(target).below(data))


@pytest.mark.parametrize(
    "target", ["jsonl:data/books.jsonl", "sqlite:///data/books.sqlite", "postgresql://x.example/d", "sqlite://"]
)
def test_the_data_folder_is_its_place(target: str) -> None:
    check_place(parse_target(target))
