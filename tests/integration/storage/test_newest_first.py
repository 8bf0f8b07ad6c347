"""Threads that show their newest posts first, over several pages: read, stored and read on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from scrapy import Request
from scrapy.http import HtmlResponse
from sqlalchemy import text

from forums.records.stored import PostTask
from forums.records.tasks_and_items import encode
from forums.spiders.forum_detail import ForumDetailSpider
from forums.storage import Database, parse
from tests.support.callbacks import collected

NEWEST = (
    'profile = "generic"\nbase_url = "http://x"\nforums = ["f"]\n[pages.comments]\nurl = "{{url}}"\nrows = "li"\n'
    'next = "a"\nfirst_is_post = true\norder = "{order}"\n[pages.comments.post]\ntitle = "h1"\n'
    '[pages.comments.fields]\nid = "./@id"\nbody = "p"\nauthor = false\ncreated_at = false\n'
)


def alone() -> ForumDetailSpider:
    """One without a crawl."""
    made = ForumDetailSpider()
    made.crawler = None  # type: ignore[assignment]
    return made


def read_thread(task: PostTask, posts: Sequence[int], *, order: str, size: int = 3) -> tuple[list[dict[str, Any]], int]:
    """The items of a reading of a thread whose first page has the newest posts, and how many pages it took."""
    pages = [list(posts)[max(0, end - size) : end] for end in range(len(posts), 0, -size)]
    items: list[dict[str, Any]] = []
    request, asked = alone().make_request_from_data(encode(task)), 0
    while True:
        shown = pages[asked] if order == "newest_page" else pages[asked][::-1]
        asked += 1
        rows = "".join(f'<li id="{n}"><p>text {n}</p></li>' for n in shown)
        following = f'<a href="/t?before={asked}">Older</a>' if asked < len(pages) else ""
        response = HtmlResponse(request.url, body=f"<html><h1>t</h1><ul>{rows}</ul>{following}".encode(), request=request)
        *found, last = collected(alone().parse_comments(response, **request.cb_kwargs))
        items += found
        if not isinstance(last, Request):
            return [*items, last], asked
        request = last


@pytest.mark.parametrize("order", ["newest", "newest_page"])
def test_a_thread_that_shows_its_newest_posts_first_is_read_to_its_opening_post_and_then_to_what_is_known(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    (tmp_path / "back.toml").write_text(NEWEST.format(order=order))
    task = PostTask(site="back", post="t", forum="f", url="http://x/t")
    items, asked = read_thread(task, range(10, 18), order=order)
    assert (asked, [item["id"] for item in items if item["kind"] == "post"]) == (3, ["t"])
    check = items[-1]
    assert (check["whole"], check["comments"], check["last_page"], check["last_comment_id"]) == (True, 7, 3, "17")
    database.write([parse(msgspec.json.encode(item)) for item in items])

    changed = msgspec.structs.replace(task, mode="changed", page=3, after="17", known=7)
    items, asked = read_thread(changed, range(10, 20), order=order)
    check = items[-1]
    assert (asked, check["whole"], check["comments"], check["last_page"], check["last_comment_id"]) == (1, False, 9, 3, "19")
    database.write([parse(msgspec.json.encode(item)) for item in items])
    assert places(database) == [(str(11 + n), 1 + n) for n in range(9)]

    items, asked = read_thread(msgspec.structs.replace(changed, after="19", known=9), range(10, 26), order=order)
    assert (asked, items[-1]["comments"]) == (3, 15)
    database.write([parse(msgspec.json.encode(item)) for item in items])
    assert places(database) == [(str(11 + n), 1 + n) for n in range(15)]


def places(database: Database) -> list[tuple[str, int]]:
    with database.engine.connect() as connection:
        found = connection.execute(text("SELECT id, position FROM comments ORDER BY position")).all()
    return [(row.id, row.position) for row in found]
