"""What a spider may have as its `redis_key`; wrong patterns are in `test_key_patterns`."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy.utils.test import get_crawler

from tests.support.link_spiders import LinksSpider


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("", "must not be empty"),
        ([], "is empty"),
        (["a", " "], "must not be empty"),
        (7, "must be a key or a list of keys"),
    ],
)
def test_what_names_no_key_is_refused(key: Any, said: str) -> None:
    with pytest.raises(ValueError, match=f"redis_key.*{said}"):
        LinksSpider.from_crawler(get_crawler(LinksSpider), redis_key=key)


def test_it_may_hold_the_spiders_name_by_either_word() -> None:
    spider = LinksSpider.from_crawler(get_crawler(LinksSpider), redis_key=["%(name)s:a", "%(spider)s:b"])
    assert spider.start_keys == ("links:a", "links:b")
