"""Raw pages: what is written is read again, whatever became of the file; a disk that fails costs no page of the crawl."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse
from warcio.archiveiterator import ArchiveIterator

from forums.raw_pages.reparse import read_pages
from tests.support.processes import wait_until
from workers.raw_pages import RawPage, RawStore
from workers.raw_pages import store as store_module
from workers.raw_pages.store import Broken, days_of, pages_in, prune, read_file, size_of

PAGE = {"kind": "comments", "forum": "f1", "thread": "t/ü", "number": 2}


def page(number: int = 1, *, site: str = "one", at: str = "2026-11-22T10:00:00.123+00:00", body: bytes | None = None) -> RawPage:
    text = body if body is not None else f"<p>{number} ü 漢</p>".encode("gb18030") * 50
    return RawPage(
        site=site,
        page={**PAGE, "number": number},
        url=f"http://forum.test/t?page={number}",
        request_url=f"http://forum.test/t?page={number}",
        status=200,
        headers=((b"content-type", b"text/html; charset=gb18030"),),
        body=text,
        fetched_at=at,
    )


def written(folder: Path, *pages: RawPage) -> RawStore:
    store = RawStore(folder)
    for one in pages:
        store.keep(one)
    store.close()
    return store


def read(folder: Path, site: str = "one", **since: Any) -> list[RawPage | Broken]:
    return list(read_pages(folder, site, **since))


def test_what_is_kept_is_read_again_byte_for_byte(tmp_path: Path) -> None:
    pages = [page(1), page(2, body=b""), page(3, body=os.urandom(100_000)), page(1, site="two")]
    store = written(tmp_path, *pages)
    assert read(tmp_path) == pages[:3]
    assert read(tmp_path, "two") == pages[3:]
    assert (store.kept, store.dropped) == (4, 0)
    assert store.kept_bytes < size_of(tmp_path, "one") + size_of(tmp_path, "two"), "each file has a head"
    assert read(tmp_path, "nobody") == []


def test_of_a_response_only_what_decoding_needs_is_kept(tmp_path: Path) -> None:
    request = Request("http://forum.test/b", meta={"redirect_urls": ["http://forum.test/a"]})
    headers: Mapping[str, Any] = {"Content-Type": "text/html", "Set-Cookie": "session=secret", "Link": ["<b>; rel=next", "<c>"]}
    response = HtmlResponse("http://forum.test/b", headers=headers, body=b"<p>", request=request, encoding="utf-8")
    kept = RawPage.of(response, "one", PAGE, "2026-11-22T10:00:00.123+00:00")
    assert (kept.url, kept.request_url) == ("http://forum.test/b", "http://forum.test/a")
    said = [(b"content-type", b"text/html"), (b"date", b"Sun, 22 Nov 2026 10:00:00 GMT")]
    assert sorted(kept.headers) == [*said, (b"link", b"<b>; rel=next"), (b"link", b"<c>")]
    written(tmp_path, kept)
    (again,) = read(tmp_path)
    assert isinstance(again, RawPage)
    assert (again.request_url, again.page, again.body) == (kept.request_url, PAGE, b"<p>")
    assert [value for name, value in again.headers if name == b"link"] == [b"<b>; rel=next", b"<c>"]


def test_other_tools_read_the_files(tmp_path: Path) -> None:
    written(tmp_path, page(1))
    (path,) = tmp_path.glob("one/2026-11-22/*.warc.gz")
    with path.open("rb") as file:
        found = [
            (record.rec_type, record.rec_headers.get_header("WARC-Target-URI"), record.rec_headers.get_header("WARC-Date"))
            for record in ArchiveIterator(file)
        ]
    assert found[0][0] == "warcinfo"
    assert found[1:] == [("response", "http://forum.test/t?page=1", "2026-11-22T10:00:00.123Z")]


@pytest.mark.parametrize("left", [0.98, 0.9, 0.5])
def test_a_record_that_was_cut_off_is_said_and_the_next_file_is_read(tmp_path: Path, left: float) -> None:
    written(tmp_path, page(1), page(2, body=os.urandom(5000)))
    (path,) = tmp_path.glob("one/2026-11-22/*.warc.gz")
    whole = path.read_bytes()
    first = len(whole) - len(page(2, body=os.urandom(5000)).to_record())
    path.rename(path.with_name("a.warc.gz"))
    (path.with_name("a.warc.gz")).write_bytes(whole[: int(first + (len(whole) - first) * left)])
    written(tmp_path, page(3))
    found = read(tmp_path)
    assert [one.page["number"] for one in found if isinstance(one, RawPage)] == [1, 3]
    assert len([one for one in found if isinstance(one, Broken)]) == 1
    assert [one.page["number"] for one in pages_in(path.with_name("a.warc.gz"))] == [1]


def test_a_file_of_something_else_is_said(tmp_path: Path) -> None:
    (tmp_path / "x.warc.gz").write_bytes(b"no warc at all")
    (found,) = read_file(tmp_path / "x.warc.gz")
    assert isinstance(found, Broken)


def test_a_full_disk_is_said_once_and_leaves_whole_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real, room = os.write, [10_000]

    def write(descriptor: int, data: bytes) -> int:
        if room[0] <= 0:
            raise OSError(28, "No space left on device")
        done = real(descriptor, bytes(data)[: room[0]])
        room[0] -= done
        return done

    monkeypatch.setattr(store_module.os, "write", write)
    store = RawStore(tmp_path)
    for number in range(10):
        store.keep(page(number, body=os.urandom(3000)))
    wait_until(lambda: store.kept + store.dropped == 10, "each was tried")
    assert store.dropped
    big = store.kept
    room[0] = 2000
    store.keep(page(10, body=b"small"))  # small pages still fit onto it
    store.close()
    assert store.kept == big + 1
    assert [one.page["number"] for one in read(tmp_path) if isinstance(one, RawPage)] == [*range(big), 10]
    assert not [one for one in read(tmp_path) if isinstance(one, Broken)]
    (line,) = caplog.records
    assert line.levelno == logging.ERROR
    assert "No space left on device; the crawl goes on without them" in line.message


def test_pages_that_come_faster_than_the_disk_takes_them_are_dropped_not_piled_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.raw_pages.store.MOST_WAITING", 5000)
    store = RawStore(tmp_path)
    for number in range(100):
        store.keep(page(number, body=bytes(4000)))
    store.close()
    assert store.dropped > 0
    assert store.kept + store.dropped == 100


def test_days_are_deleted_when_their_last_page_is_too_old(tmp_path: Path) -> None:
    for day in ("20", "21", "22"):
        written(
            tmp_path, page(1, at=f"2026-11-{day}T10:00:00.000+00:00"), page(1, site="two", at=f"2026-11-{day}T10:00:00.000+00:00")
        )
    (tmp_path / "one" / "notes").mkdir()
    now = datetime(2026, 11, 22, 12, tzinfo=UTC)
    gone = prune(tmp_path, {"one": 1, "nobody": 3}, now)
    assert [str(place.relative_to(tmp_path)) for place in gone] == ["one/2026-11-20"]
    assert days_of(tmp_path, "one") == [date(2026, 11, 21), date(2026, 11, 22)]
    assert len(days_of(tmp_path, "two")) == 3, "no known site: its file may be away for a moment"
    assert prune(tmp_path, {"one": 1}, now) == []
    prune(tmp_path, {"one": 0}, now)
    assert days_of(tmp_path, "one") == [date(2026, 11, 22)], "today's are kept until it is over"


def test_since_leaves_out_what_is_older(tmp_path: Path) -> None:
    written(tmp_path, page(1, at="2026-11-20T10:00:00.000+00:00"), page(2), page(3, at="2026-11-22T12:00:00.000+00:00"))
    found = read(tmp_path, since=datetime(2026, 11, 22, 11, tzinfo=UTC))
    assert [one.page["number"] for one in found if isinstance(one, RawPage)] == [3]
