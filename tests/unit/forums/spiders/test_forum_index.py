"""The pages of an index are read to their end."""

from __future__ import annotations

from pathlib import Path

import pytest
from scrapy.http import Request, TextResponse

from forums.records.stored import ForumTask
from forums.records.tasks_and_items import encode
from forums.spiders.forum_list import ForumListSpider
from tests.support.callbacks import collected

SITE = """
profile = "discourse"
base_url = "http://forum.example"
discover = { include = ["*"] }
"""


def alone() -> ForumListSpider:
    """One without a crawl."""
    made = ForumListSpider()
    made.crawler = None  # type: ignore[assignment]
    return made


def answered(request: Request, ids: range) -> list[object]:
    rows = ", ".join(f'{{"id": {one}, "name": "n"}}' for one in ids)
    response = TextResponse(request.url, body=f'{{"category_list": {{"categories": [{rows}]}}}}'.encode(), request=request)
    return collected(alone().parse_index(response, **request.cb_kwargs))


def test_an_index_that_shows_the_same_page_for_every_number_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.toml").write_text(SITE)
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    first = alone().make_request_from_data(encode(ForumTask(site="x", forum="index", mode="index")))
    *forums, second = answered(first, range(1, 21))
    assert (len(forums), isinstance(second, Request)) == (20, True)
    *_, third = answered(second, range(21, 41))
    assert isinstance(third, Request)
    *_, report = answered(third, range(21, 41))
    assert isinstance(report, dict)
    assert (report["outcome"], report["mode"]) == ("complete", "index")
