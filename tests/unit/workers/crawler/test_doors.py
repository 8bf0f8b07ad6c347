"""Doors of a crawler: closed in every project, opened by their names, by a project, a spider or a service."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.settings import Settings

from workers.crawler.doors import ClosedDoor, Doors, close_doors, open_schemes
from workers.http.client import allow, may_connect
from workers.http.public_addresses import Allowance, allowance_in

SCRAPYS = "scrapy.core.downloader.handlers"
CONSOLES = {
    "TELNETCONSOLE_ENABLED": "scrapy.extensions.telnet.TelnetConsole",
    "REMOTE_CONTROL_ENABLED": "scrapy.extensions.remote_control.RemoteControl",
}


def closed(project: dict[str, Any] | None = None, spiders: dict[str, Any] | None = None, **service: str) -> Settings:
    settings = Settings(project or {}, priority="project")
    settings.setdict(service, priority="cmdline")
    spider = type("Own", (Spider,), {"name": "own", "custom_settings": spiders})
    spider.update_settings(settings)
    close_doors(settings)
    return settings


@pytest.mark.parametrize(("switch", "extension"), CONSOLES.items())
def test_a_console_is_closed_until_its_own_setting_opens_it(switch: str, extension: str) -> None:
    shut = closed({"EXTENSIONS": {extension: 500}})
    assert not shut.getbool(switch), "listed with a place, as Scrapy's documentation does, it is not switched on"
    assert extension not in closed().getdict("EXTENSIONS_BASE"), "nor loaded"
    for opened in (closed({switch: True}), closed(None, {switch: True}), closed(**{switch: "True"})):
        assert opened.getbool(switch)
        assert extension in opened.getdict("EXTENSIONS_BASE")


def test_schemes_other_than_http_are_closed_until_a_handler_of_theirs_is_named() -> None:
    assert open_schemes(closed()) == {"http", "https"}
    file = {"file": f"{SCRAPYS}.file.FileDownloadHandler"}
    for opened in (closed({"DOWNLOAD_HANDLERS": file}), closed(None, {"DOWNLOAD_HANDLERS": file})):
        assert open_schemes(opened) == {"http", "https", "file"}


def test_the_fleets_client_takes_the_place_of_scrapys_unless_the_project_names_one_or_what_only_scrapys_reads() -> None:
    ours, own = "workers.http.client.DownloadHandler", f"{SCRAPYS}.http11.HTTP11DownloadHandler"
    assert closed().getwithbase("DOWNLOAD_HANDLERS")["https"] == ours
    assert closed({"DOWNLOAD_HANDLERS": {"https": own}}).getwithbase("DOWNLOAD_HANDLERS")["https"] == own
    factory = {"DOWNLOADER_CLIENTCONTEXTFACTORY": "shop.tls.OwnCertificate"}
    assert closed(None, factory).getwithbase("DOWNLOAD_HANDLERS")["https"] == own


@pytest.mark.parametrize(
    "url", ["http://127.1/", "http://0x7f000001/", "http://169.254.169.254/", "http://[::1]:80/", "http://a.localhost./"]
)
def test_an_address_that_is_not_public_is_refused_in_each_notation_under_any_download_handler(url: str) -> None:
    doors = Doors.from_crawler(Crawler(Spider, closed()))
    with pytest.raises(ClosedDoor, match="is not a public address; name it in ALLOW_PRIVATE_ADDRESSES"):
        doors.process_request(Request(url))
    with pytest.raises(ClosedDoor, match="is not a public address"):
        doors.process_request(Request("http://example.org/", meta={"proxy": url}))
    doors.process_request(Request("http://example.org/"))
    allow(named := Request(url), Allowance(everything=True))
    doors.process_request(named)  # its site's file names it


def test_the_proxy_that_the_environment_names_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "me:secret@10.0.0.9:3128")
    monkeypatch.setenv("no_proxy", "10.0.0.1")
    again = Request("http://example.org/", meta={"proxy": "http://10.0.0.9:3128"})  # as HttpProxyMiddleware leaves it for a retry
    doors = Doors.from_crawler(Crawler(Spider, closed()))
    doors.process_request(again)
    with pytest.raises(ClosedDoor):
        doors.process_request(Request("http://10.0.0.1/"))
    with pytest.raises(ClosedDoor):
        Doors.from_crawler(Crawler(Spider, closed({"HTTPPROXY_ENABLED": False}))).process_request(again)


@pytest.mark.parametrize("value", [["10.0.0.1", "Splash"], "10.0.0.1, splash"])
def test_hosts_are_opened_one_by_one(value: object) -> None:
    doors = Doors.from_crawler(Crawler(Spider, closed({"ALLOW_PRIVATE_ADDRESSES": value})))
    doors.process_request(Request("http://10.0.0.1:8050/"))
    with pytest.raises(ClosedDoor):
        doors.process_request(Request("http://10.0.0.2/"))
    assert may_connect(allowance_in(value), "splash", "10.0.0.7")
    assert not may_connect(allowance_in(value), "other", "10.0.0.7")


@pytest.mark.parametrize(
    ("value", "everything"), [(True, True), ("True", True), ("1", True), (False, False), ("0", False), (None, False)]
)
def test_a_switch_opens_all_of_them(value: object, everything: bool) -> None:
    assert allowance_in(value) == Allowance(everything=everything)
