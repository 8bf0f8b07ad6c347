"""Copied meta is warned of where it changes whose limits count a request, or when it is sent."""

from __future__ import annotations

import time
from typing import Any

import pytest
from scrapy import Request
from scrapy.settings import Settings

from redis_components.scrapy_glue.page_tracker import Page, current_page
from redis_components.scrapy_glue.scheduler_parts import CopiedMeta

PAGE = "https://a.example/1"
DOWNLOADED = {"download_slot": "a.example", "depth": 1}


def warned(caplog: pytest.LogCaptureFixture, url: str, meta: dict[str, Any], *, copied: dict[str, Any] | None = None) -> str:
    """What is logged for a request to `url`, found on a page with `meta`, whose own meta is `copied`."""
    around = current_page.set(Page("1", Request(PAGE, meta=meta)))
    try:
        CopiedMeta(Settings()).check(Request(url, meta=meta if copied is None else copied))
    finally:
        current_page.reset(around)
    return caplog.text


@pytest.mark.parametrize("key", ["lane", "site", "download_slot"])
def test_a_limit_of_another_host_is_named(caplog: pytest.LogCaptureFixture, key: str) -> None:
    line = warned(caplog, "https://b.example/1", {**DOWNLOADED, key: "a"})
    assert f'meta["{key}"]' in line
    assert line.count("\n") == 1
    assert line.isascii()


def test_the_same_host_keeps_its_limits(caplog: pytest.LogCaptureFixture) -> None:
    assert not warned(caplog, "https://a.example/2", {**DOWNLOADED, "lane": "a", "site": "a"})


def test_a_value_of_its_own_is_meant(caplog: pytest.LogCaptureFixture) -> None:
    own = {"download_slot": "b.example", "site": "b"}
    assert not warned(caplog, "https://b.example/2", {**DOWNLOADED, "site": "a"}, copied=own)


def test_a_redirect_goes_on_with_its_page(caplog: pytest.LogCaptureFixture) -> None:
    meta = {**DOWNLOADED, "site": "a"}
    assert not warned(caplog, "https://b.example/2", meta, copied={**meta, "redirect_times": 1})


def test_a_time_that_is_over_is_none_and_one_to_come_is_named(caplog: pytest.LogCaptureFixture) -> None:
    assert not warned(caplog, "https://a.example/2", {**DOWNLOADED, "not_before": time.time() - 60})
    assert 'meta["not_before"]' in warned(caplog, "https://a.example/2", {**DOWNLOADED, "not_before": time.time() + 3600})


def test_without_a_page_there_is_nothing_to_copy() -> None:
    CopiedMeta(Settings()).check(Request(PAGE, meta=DOWNLOADED))
