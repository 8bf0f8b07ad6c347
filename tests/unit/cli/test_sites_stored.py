"""What `trawl sites check --live` read goes through the database before it is shown."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cli.commands.sites_check import store_sample
from forum_reader.reading.read_page import ListedThread, ReadComment, ReadPost
from forums.sites.check import TriedThread
from forums.sites.load import load_file


def test_a_thread_is_shown_as_the_database_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "x.toml").write_text('profile = "phpbb"\nbase_url = "https://f.example"\nforums = ["1"]\n')
    at = datetime(2026, 11, 21, 8, 3, tzinfo=UTC)
    read = TriedThread("1", ListedThread(id="list-7", token="t", author="ida", created_at=at, url="https://f.example/t/7"))
    read.post, read.comments_url = ReadPost(id="7", title="Moss", body="on the roof"), "https://f.example/t/7"
    read.comments = (
        ReadComment(id="9", parent_id="8", body="no", position=2),
        ReadComment(id="8", body="yes", author="Ben", created_at=at, position=1),
        ReadComment(id="10", body="x", position=2**70),
    )
    stored = store_sample(load_file(tmp_path / "x.toml"), read)
    assert (stored.posts, stored.comments) == (1, 2)
    post, first, second = stored.rows
    assert (post.id, post.author, (post.created_at or "")[:16]) == ("7", "ida", "2026-11-21T08:03"), "of the list"
    assert (first.id, first.author, second.id, second.parent_id) == ("8", "Ben", "9", "8")
    assert len(stored.refused) == 1
    assert stored.refused[0].startswith("comment 10: ")
    assert "position" in stored.refused[0]
    assert not list(tmp_path.glob("trawl-check-*")), "it is gone"
