"""A setting whose class cannot be loaded is named before anything is crawled, and what is right passes."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy.settings import Settings

from fleet_operations.deploy.check_spider import missing
from redis_components.errors import ConfigError
from workers.crawler.setting_types import load_components, set_each
from workers.state.services import ServiceRecord

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a table": ({"ITEM_PIPELINES": "shop.Pipeline"}, "ITEM_PIPELINES = 'shop.Pipeline' is not a table: write JSON"),
    "a class": ({"SCHEDULER": "nowhere.Scheduler"}, "SCHEDULER = 'nowhere.Scheduler' cannot be loaded"),
    "an extension": ({"EXTENSIONS": {"nowhere.Mail": 1}}, "EXTENSIONS = 'nowhere.Mail' cannot be loaded"),
    "a handler": ({"DOWNLOAD_HANDLERS": {"https": "nowhere.H"}}, "DOWNLOAD_HANDLERS = 'nowhere.H' cannot be loaded"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_loaded_is_one_line_with_the_setting(what: str) -> None:
    values, said = WRONG[what]
    settings = Settings()
    with pytest.raises(ConfigError) as refused:
        set_each(settings, values)
        load_components(settings)
    assert said in str(refused.value)


def test_what_scrapy_takes_passes() -> None:
    """Also what is off, an object in place of a path, texts of a command line, and lists of a service's declaration."""
    declared = ServiceRecord(settings={"RETRY_HTTP_CODES": [500, 503], "DOWNLOAD_DELAY": 0.5, "COOKIES_ENABLED": False})
    values: dict[str, Any] = {
        **declared.scrapy_settings(),
        "CONCURRENT_REQUESTS": "8",
        "TELNETCONSOLE_ENABLED": "False",
        "LOG_LEVEL": 20,
        "ITEM_PIPELINES": '{"redis_components.pipelines.RedisPipeline": 300}',
        "EXTENSIONS": {"scrapy.extensions.telnet.TelnetConsole": None, "nowhere.Mail": None},
        "SPIDER_MIDDLEWARES": {Settings: 5},
        "DOWNLOAD_TIMEOUT": None,
        "FEEDS": {},
    }
    settings = Settings(values)
    load_components(settings)
    assert settings.getlist("RETRY_HTTP_CODES") == ["500", "503"]


def test_each_of_the_four_settings_that_is_missing_is_told() -> None:
    whole = {
        "SCHEDULER": "redis_components.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "redis_components.dupefilter.RFPDupeFilter",
        "STATS_CLASS": "redis_components.stats.RedisStatsCollector",
        "ITEM_PIPELINES": {"redis_components.pipelines.RedisPipeline": 300},
    }
    assert list(missing(Settings(whole))) == []
    for left_out in ("SCHEDULER", "STATS_CLASS", "ITEM_PIPELINES"):
        (said,) = missing(Settings({name: value for name, value in whole.items() if name != left_out}))
        assert f"{left_out} = " in said
    (said,) = missing(Settings(whole | {"DUPEFILTER_CLASS": "scrapy.dupefilters.RFPDupeFilter"}))
    assert "DUPEFILTER_CLASS = " in said
