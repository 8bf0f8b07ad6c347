"""A rehearsal: two versions of a spider on the same kept pages, without network."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis
from scrapy.http import HtmlResponse, Request

from cli.main import main
from fleet_operations.deploy.rehearsal import Rehearsal, kept_pages, replay
from redis_components.errors import ConfigError
from workers.process.options import CrawlerOptions
from workers.raw_pages.store import RawPage, RawStore
from workers.state.services import Deployments, ServiceRecord, Services

SPIDER = """
import urllib.request
import scrapy


class Books(scrapy.Spider):
    name = "books"
    start_urls = ["https://books.example/1"]

    def parse(self, response):
        for row in response.css("li"):
            yield {{"name": row.css("b::text").get(), "price": {price}}}
        {more}
        yield from response.follow_all(css="a")
"""
SETTINGS = """
SPIDER_MODULES = ["{name}.spiders"]
ITEM_PIPELINES = {{"no.such.Pipeline": 1}}
FEEDS = {{"written.jsonl": {{"format": "jsonlines"}}}}
"""


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRAWL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="no page of books is kept"):
        kept_pages("books")
    store = RawStore(tmp_path / "data" / "raw")
    for number in range(1, 5):
        url = f"https://books.example/{number}"
        row = f"<li><b>n{number}</b><i>{number}</i></li>"
        body = f"{row}<a href=/{number + 1}>next</a>".encode()
        response = HtmlResponse(url, body=body, request=Request(url))
        store.keep(RawPage.of(response, "books", {"kind": "page"}, "2026-11-29T03:00:00+00:00"))
    store.close()
    return kept_pages("books")


def version(folder: Path, name: str, price: str = 'row.css("i::text").get()', more: str = "pass") -> CrawlerOptions:
    package = folder / name
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "spiders.py").write_text(SPIDER.format(price=price, more=more))
    (package / "settings.py").write_text(SETTINGS.format(name=name))
    return CrawlerOptions(spider="books", project=f"{name}.settings")


def test_a_new_version_is_compared_with_the_present_one_on_the_same_pages(pages: Path, tmp_path: Path) -> None:
    before = replay(version(tmp_path, "shop_v1"), pages)
    assert (before.pages, before.missing, len(before.items), before.errors) == (4, 1, 4, {})
    same = Rehearsal(before=before, after=replay(version(tmp_path, "shop_v2"), pages))
    assert list(same.worse()) == list(same.changed()) == []
    assert next(same.lines()).endswith("4 items before, 4 after")

    lost = "row.css('em::text').get()"
    raising = "if response.url.endswith('3'): urllib.request.urlopen('http://127.0.0.1:1/')"
    worse = Rehearsal(before=before, after=replay(version(tmp_path, "shop_v3", price=lost, more=raising), pages))
    assert worse.changed() == {"price": (3, 3)}, "the page that raises leads to no further one"
    found = "\n".join(worse.worse())
    assert "price: 3 items have lost it" in found
    assert "3 items, 4 before" in found
    assert "a rehearsal has no network> (0 before)" in found

    (tmp_path / "shop_v2" / "spiders.py").write_text("import no_such_package\n")
    broken = Rehearsal(before=before, after=replay(CrawlerOptions(spider="books", project="shop_v2.settings"), pages))
    assert "no_such_package" in next(broken.worse())
    assert not (tmp_path / "written.jsonl").exists()


def test_a_deploy_that_is_rehearsed_worse_changes_nothing(
    pages: Path, tmp_path: Path, redis_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert pages
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)
    monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "shop.settings")
    version(tmp_path, "shop")
    project = tmp_path / "next"
    project.mkdir()
    version(project, "shop", price="None")
    (project / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
    Services(redis_client).declare("books", ServiceRecord(size=0))
    assert main(["deploy", str(project), "--service", "books", "--rehearse"]) == 1
    shown = capsys.readouterr()
    assert "rehearsed on 4 kept pages" in shown.out
    assert "price: another value in 4 items, none in 4 of them" in shown.out
    assert "books stays as it is" in shown.err
    known = Deployments(redis_client).of("books")
    assert (known.current, known.versions[0].note) == ("", "rehearsed: price: 4 items have lost it")
