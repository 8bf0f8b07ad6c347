"""Settings of a project that `trawl services check` reports, each with its siblings, and those that it leaves alone."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy.settings import Settings

from fleet_operations.deploy.check_spider import closing, log_elsewhere, opened, shared_files

OPENED: dict[str, tuple[dict[str, Any], str]] = {
    "telnet": ({"TELNETCONSOLE_ENABLED": True}, "TELNETCONSOLE_ENABLED = True"),
    "remote control": ({"REMOTE_CONTROL_ENABLED": "1"}, "REMOTE_CONTROL_ENABLED = True"),
    "private addresses": ({"ALLOW_PRIVATE_ADDRESSES": True}, "name the hosts that it needs"),
    "private addresses in a list": ({"ALLOW_PRIVATE_ADDRESSES": "10.0.0.1,true"}, "name the hosts that it needs"),
    "schemes": ({"DOWNLOAD_HANDLERS": {"file": "shop.File", "ftp": "shop.Ftp", "s3": None}}, "opens file:, ftp:"),
    "a client": ({"DOWNLOAD_HANDLERS": {"https": "shop.Http"}}, "opens https:"),
    "a downloader": ({"DOWNLOADER": "shop.Downloader"}, "DOWNLOADER has requests sent by another client"),
    "a resolver": ({"TWISTED_DNS_RESOLVER": "shop.Resolver"}, "TWISTED_DNS_RESOLVER has"),
    "a reactor": ({"TWISTED_REACTOR": "twisted.internet.selectreactor.SelectReactor"}, "TWISTED_REACTOR has"),
    "TLS": ({"DOWNLOADER_CLIENTCONTEXTFACTORY": "shop.Factory"}, "DOWNLOADER_CLIENTCONTEXTFACTORY has"),
    "robots.txt": ({"ROBOTSTXT_OBEY": False}, "ROBOTSTXT_OBEY = False"),
}


def by_spider(values: dict[str, Any]) -> Settings:
    settings = Settings()
    settings.setdict(values, priority="spider")
    return settings


@pytest.mark.parametrize("what", OPENED)
def test_what_a_project_opens_is_a_line_and_what_the_service_opens_is_meant(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRAWL_ALLOW_PRIVATE", raising=False)
    values, line = OPENED[what]
    for settings in (Settings(values), by_spider(values)):
        (found,) = opened(settings)
        assert line in found
    settings = Settings()
    settings.setdict(values, priority="cmdline")  # the service's
    assert list(opened(settings)) == []


def test_a_right_project_opens_nothing() -> None:
    values = {
        "ALLOW_PRIVATE_ADDRESSES": ["10.0.0.5", "splash"],
        "DOWNLOAD_HANDLERS": {"file": None, "http": "workers.http.client.DownloadHandler"},
        "ROBOTSTXT_OBEY": True,
        "FEEDS": {"data/%(batch_time)s.json": {}, "stdout:": {}, "data/%(pid)s.csv": None},
        "CLOSESPIDER_ERRORCOUNT": 10,
    }
    settings = Settings(values)
    found = [opened(settings), log_elsewhere(settings), shared_files(settings)]
    assert [list(lines) for lines in found] == [[], [], []]
    assert closing(settings) == ""


@pytest.mark.parametrize("uri", ["all.jsonl", "file:///tmp/all.csv", "%(name)s-%(time)s.json", "s3://bucket/all.json"])
def test_one_file_of_several_crawlers_is_reported(uri: str) -> None:
    settings = Settings({"FEEDS": {uri: {"format": "json"}}})
    (line,) = shared_files(settings)
    assert f"several crawlers write {uri}" in line
    assert list(shared_files(Settings({"FEEDS": {uri: {}}, "FEED_URI_PARAMS": "shop.names"}))) == []


def test_a_folder_of_a_queue_and_a_log_elsewhere_are_reported() -> None:
    assert "JOBDIR = 'jobs'" in "".join(shared_files(Settings({"JOBDIR": "jobs"})))
    for values in ({"LOG_FILE": "a.log"}, {"LOG_ENABLED": False}):
        assert len(list(log_elsewhere(Settings(values)))) == 1


@pytest.mark.parametrize("name", ["CLOSESPIDER_TIMEOUT", "CLOSESPIDER_ITEMCOUNT", "SCHEDULER_IDLE_BEFORE_CLOSE"])
def test_a_setting_that_ends_each_crawl_is_reported(name: str) -> None:
    assert closing(Settings({name: 5})).startswith(name)
    assert closing(Settings({name: 0})) == ""
