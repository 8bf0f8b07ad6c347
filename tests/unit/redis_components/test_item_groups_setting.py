"""REDIS_ITEMS_GROUPS: what it may hold, and which pipelines cannot have it."""

from __future__ import annotations

import pytest
from scrapy.settings import Settings

from redis_components.errors import ConfigError
from redis_components.scrapy_glue.engine import crawl_keys


@pytest.mark.parametrize("value", [["files", "search"], "files, search", ("files", "search", "files")])
def test_groups_are_a_list_or_names_with_commas(value: object) -> None:
    assert crawl_keys(Settings({"REDIS_ITEMS_GROUPS": value}), "books").item_groups == ("files", "search")


@pytest.mark.parametrize("value", ["", [], None])
def test_without_groups_the_items_are_a_list(value: object) -> None:
    assert crawl_keys(Settings({"REDIS_ITEMS_GROUPS": value}), "books").item_groups == ()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (["a b"], "'a b' cannot name a consumer group"),
        ([3], "3 cannot name"),
        (7, "is not a list of names"),
        ([f"g{n}" for n in range(17)], "has 17 consumer groups: at most 16"),
    ],
)
def test_what_cannot_be_groups_is_one_line(value: object, said: str) -> None:
    with pytest.raises(ConfigError, match=f"REDIS_ITEMS_GROUPS.*{said}"):
        crawl_keys(Settings({"REDIS_ITEMS_GROUPS": value}), "books")
