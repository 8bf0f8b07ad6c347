"""Kept pages are read once more after a selector fix: by a real crawl that kept them, and as many as memory would not hold."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from cli.main import main
from forums.raw_pages.reparse import BATCH, reparse
from forums.records.tasks_and_items import stamp
from forums.sites import load_site
from forums.storage import Database, comments, parse, posts
from forums.storage.schema.tables import revisions
from tests.support.demo_sites import declare
from tests.support.items import comment
from workers.raw_pages import RawPage, RawStore, raw_dir

T0 = datetime(2026, 11, 20, 10, tzinfo=UTC)
Trawl = Callable[..., tuple[int, str, str]]


@pytest.fixture
def sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path / "sites"))
    monkeypatch.setenv("TRAWL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("TRAWL_DATABASE_URL", raising=False)
    (tmp_path / "sites").mkdir()
    declare(tmp_path / "sites", "one", "http://forum.test", "\n[raw]\nkeep_days = 7\n")
    return tmp_path / "sites"


@pytest.fixture
def trawl(capfd: pytest.CaptureFixture[str]) -> Trawl:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        return code, *capfd.readouterr()

    return run


def comments_page(thread: str, texts: list[str], *, hours: float = 0, **more: Any) -> RawPage:
    rows = [
        {"id": f"{thread}-c{n}", "post_id": thread, "body": text, "text": text, "author": "a", "created_at": stamp(T0)}
        for n, text in enumerate(texts)
    ]
    return page("comments", f"/comment/{thread}/1", {"pages": 1, "comments": rows}, thread=thread, hours=hours, **more)


def page(kind: str, path: str, body: Any, *, thread: str = "", hours: float = 0, at_url: str = "http://forum.test") -> RawPage:
    return RawPage(
        site="one",
        page={"kind": kind, "forum": "f1", "thread": thread, "number": 1},
        url=at_url + path,
        request_url=at_url + path,
        status=200,
        headers=((b"content-type", b"application/json"),),
        body=body if isinstance(body, bytes) else json.dumps(body).encode(),
        fetched_at=stamp(T0 + timedelta(hours=hours)),
    )


def keep(*pages: RawPage) -> None:
    store = RawStore(raw_dir())
    for one in pages:
        store.keep(one)
    store.close()
    assert store.dropped == 0


def stored(database: Database) -> list[tuple[Any, ...]]:
    query = select(comments.c.id, comments.c.body, comments.c.fetched_at).order_by(comments.c.id)
    return [tuple(row) for row in database.stream(query)]


def count(database: Database, table: Any) -> int:
    (row,) = database.stream(select(func.count()).select_from(table))
    return int(row[0])


def break_selector(sites: Path) -> None:
    """`body` is looked for at a place where the site has it no more."""
    file = sites / "one.toml"
    head, _, fields = file.read_text().partition("[pages.comments.fields]")
    file.write_text(head + "[pages.comments.fields]" + fields.replace('body = "body"', 'body = "nowhere"'))


def mend_selector(sites: Path) -> None:
    file = sites / "one.toml"
    file.write_text(file.read_text().replace('body = "nowhere"', 'body = "text"'))


def test_after_a_selector_fix_what_was_lost_is_stored_with_its_old_time_and_without_revisions(sites: Path, trawl: Trawl) -> None:
    break_selector(sites)
    keep(
        comments_page("p1", ["hello", "world"]), comments_page("p1", ["hello", "world!"], hours=2), comments_page("p2", ["moin"])
    )
    with Database.from_url() as database:
        code, _, err = trawl("sites", "reparse", "one")
        assert (code, stored(database)) == (2, []), "not one text: a slip must not empty what is stored"
        assert "nothing is stored: none of 5 posts and comments has a text: mend the fields `body`" in err
        for id_, hours in (("p1-c0", 2), ("p1-c1", 2), ("p2-c0", 0)):
            wrong = comment(id_, site="one", post_id=id_[:2], body="", fetched_at=stamp(T0 + timedelta(hours=hours)))
            database.write([parse(json.dumps(wrong).encode())])
        mend_selector(sites)

        code, out, _ = trawl("sites", "reparse", "one")
        assert code == 0
        assert "3 pages read, 5 items stored" in out
        later = T0 + timedelta(hours=2)
        assert stored(database) == [("p1-c0", "hello", later), ("p1-c1", "world!", later), ("p2-c0", "moin", T0)]
        edits = [tuple(row) for row in database.stream(select(revisions.c.id, revisions.c.body))]
        assert edits == [("p1-c1", "world")], "what the author changed, and not that it was read wrongly"

        assert trawl("sites", "reparse", "one", "--since", "3650d")[0] == 0
        assert count(database, revisions) == 1


def test_pages_of_a_kind_that_the_site_file_has_no_more_are_said_and_the_others_read(sites: Path) -> None:
    file = sites / "one.toml"
    before, _, rest = file.read_text().partition("[pages.thread]")
    file.write_text(before + rest[rest.index("[pages.comments]") :])
    keep(page("thread", "/post/p1", {"id": "p1"}, thread="p1"), comments_page("p1", ["hello"]))
    with Database.from_url() as database:
        report = reparse(database, raw_dir(), load_site("one"))
    assert dict(report.faults) == {"the site file has no [pages.thread] any more": 1}
    assert (report.pages, report.items) == (1, 1)


def test_what_was_fetched_since_is_not_overwritten(sites: Path) -> None:
    keep(comments_page("p1", ["old"]))
    with Database.from_url() as database:
        newer = comment("p1-c0", site="one", post_id="p1", body="new", fetched_at=stamp(T0 + timedelta(days=1)))
        database.write([parse(json.dumps(newer).encode())])
        reparse(database, raw_dir(), load_site("one"))
        assert [row[1] for row in stored(database)] == ["new"]


def test_pages_that_are_none_are_told_with_their_reasons_and_the_others_are_stored(sites: Path, trawl: Trawl) -> None:
    keep(
        page("comments", "/comment/p1/1", b"<html><title>Log in</title><input type=password>", thread="p1"),
        page("comments", "/comment/p2/1", b'{"error": "no"}', thread="p2"),
        page("list", "/list/f1/1", {"pages": 1, "threads": [{"id": "p3", "reply_count": 1}]}),
        page("thread", "/post/p3", {"id": "p3", "forum_id": "f1", "title": "T", "body": "B"}, thread="p3"),
        page("index", "/forums", {"forums": [{"id": "f1", "name": "One"}]}),
    )
    code, out, _ = trawl("sites", "reparse", "one")
    assert code == 1, "some pages could not be read"
    assert "1 times: a login page, 'Log in'" in out
    assert "1 times: has no list of rows at comments" in out
    with Database.from_url() as database:
        assert [tuple(row) for row in database.stream(select(posts.c.id, posts.c.title, posts.c.url))] == [
            ("p3", "T", "http://forum.test/post/p3")
        ]


def test_a_site_without_pages_says_why(sites: Path, trawl: Trawl) -> None:
    assert trawl("sites", "reparse", "one")[::2] == (
        1,
        f"trawl: no pages of one in {raw_dir() / 'one'}: it keeps them for 7 days\n",
    )
    assert trawl("sites", "reparse", "two")[0] == 2


def test_it_holds_few_items_however_many_pages_there_are(sites: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = 3 * BATCH // 20
    keep(*(comments_page(f"p{n}", ["text"] * 20) for n in range(pages)))
    written: list[int] = []
    with Database.from_url() as database:
        write = database.write
        monkeypatch.setattr(database, "write", lambda items: written.append(len(items)) or write(items))
        report = reparse(database, raw_dir(), load_site("one"))
        assert count(database, comments) == report.items == sum(written) == pages * 20
    assert len(written) >= 3
    assert max(written) <= BATCH + 20
