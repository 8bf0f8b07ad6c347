"""Runs of a group on a real fleet: each member has the verdict that its site gives cause for."""

from __future__ import annotations

import gzip
import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from fleet_operations.consumers.run_files import item_key
from redis_components.keys import CrawlKeys
from tests.support.plain_project import PlainFleet, project_fleet
from tests.support.processes import heard_out, wait_until
from tests.support.watched_site import Page, WatchedSite
from workers.state.group_runs import GroupRun, GroupRuns

SETTINGS = """
import os
from tests.support.light_scrapy import *
SPIDER_MODULES = ["shop_spiders"]
RETRY_TIMES = 1
ROBOTSTXT_OBEY = False
FEEDS = {os.environ["TEST_FEEDS"] + "/%(name)s.geojson": {"format": "geojson"}}
FEED_EXPORTERS = {"geojson": "shop_export.GeoJson"}
"""
EXPORT = '''
from scrapy.exporters import JsonItemExporter


class GeoJson(JsonItemExporter):
    """As projects have one: features in a collection."""

    def start_exporting(self):
        self.file.write(b'{"type": "FeatureCollection", "features": ')
        super().start_exporting()

    def export_item(self, item):
        super().export_item({"type": "Feature", "properties": dict(item)})

    def finish_exporting(self):
        super().finish_exporting()
        self.file.write(b"}")


class Strict:
    def process_item(self, item):
        raise ValueError("no such currency")
'''
BASE = '''
import os
import scrapy


class Shop(scrapy.Spider):
    """Items of the pages of one path, which `path` names."""

    owner = "shops"
    path = ""
    site = os.environ["TEST_SITE"]

    async def start(self):
        yield scrapy.Request(f"{self.site}/{self.path}", dont_filter=True)

    def parse(self, response):
        for row in response.css("li"):
            yield {"name": row.css("b::text").get(), "price": row.css("i::text").get(), "by": self.name}
        yield from response.follow_all(css="a")
'''
MEMBERS = {
    "fine": ("", "fine"),
    "empty": ("", "no_items"),
    "gone": ("", "moved"),
    "refused": ('allowed_domains = ["shop.example"]', "refused"),
    "walled": ("", "wall"),
    "broken": ("", "unreachable"),
    "closed": ('site = "http://127.0.0.1:1"', "unreachable"),
    "unnamed": ('site = "http://no-such-host.invalid"', "unresolved"),
    "idle": ("async def start(self):\n        return\n        yield", "nothing_due"),
    "raising": ("def parse(self, response):\n        raise ValueError('no price')", "crashed"),
    "losing": ('path = "fine"\n    custom_settings = {"ITEM_PIPELINES": {"shop_export.Strict": 1}}', "crashed"),
    "indexed": ('path = "index"\n    custom_settings = {"ROBOTSTXT_OBEY": True}', "robots"),
    "forbidden": ('path = "hidden/1"\n    custom_settings = {"ROBOTSTXT_OBEY": True}', "robots"),
    "limited": ('path = "fine"\n    custom_settings = {"CLOSESPIDER_ITEMCOUNT": 1}', "own_limit"),
    "elsewhere": ("", "moved"),
    "chain": ('path = "chain/1"\n    custom_settings = {"DOWNLOAD_DELAY": 0.5}', "fine"),
}
"""The body of each spider, and its verdict."""
if os.environ.get("SHORT_TESTS"):
    MEMBERS = {name: one for name, one in MEMBERS.items() if name in ("fine", "empty", "refused", "raising", "chain")}
CHAIN = 20
TRAWL_TOML = """
[groups.shops]
attributes = {owner = "shops"}
at_once = 4
files = "{folder}/files"
key = "name"
"""


def rows(*prices: str) -> Page:
    return Page("".join(f"<li><b>n{price}</b><i>{price}</i></li>" for price in prices))


def shop(site: WatchedSite, other: WatchedSite) -> None:
    site.pages = {
        "/fine": Page(f"{rows('1', '2', '3').body}<a href=/fine/2>more</a>"),
        "/fine/2": rows("4", "5"),
        "/empty": Page("<p>sold out</p>"),
        "/refused": Page("no", 403),
        "/walled": Page('<html><body><script id="anubis_challenge">{}</script></body></html>'),
        "/broken": Page("oh", 500),
        "/raising": rows("1"),
        "/hidden/1": rows("1"),
        "/index": Page("<a href=/hidden/1>all of them</a>"),
        "/robots.txt": Page("User-agent: *\nDisallow: /hidden/", headers={"Content-Type": "text/plain"}),
        "/elsewhere": Page("", 302, {"Location": f"http://localhost:{other.port}/parked"}),
    }
    site.pages |= {f"/chain/{n}": Page(f"{rows(str(n)).body}<a href=/chain/{n + 1}>next</a>") for n in range(1, CHAIN)}
    site.pages[f"/chain/{CHAIN}"] = rows(str(CHAIN))
    other.pages = {"/parked": Page("<p>this domain is for sale</p>")}


@contextmanager
def shop_fleet(folder: Path, *members: str, files: str = "") -> Iterator[tuple[PlainFleet, WatchedSite]]:
    """Start its fleet with these members (none: all), and its site. `files`: the place of the files, else a folder."""
    package = folder / "project" / "shop_spiders"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "base.py").write_text(BASE)
    for name in members or MEMBERS:
        body, _ = MEMBERS[name]
        text = f'from .base import Shop\n\n\nclass Spider(Shop):\n    name = path = "{name}"\n    {body}\n'
        (package / f"{name}.py").write_text(text)
    (package / "not_installed.py").write_text("import no_such_package\n")
    (folder / "project" / "shop_settings.py").write_text(SETTINGS)
    (folder / "project" / "shop_export.py").write_text(EXPORT)
    (folder / "trawl.toml").write_text(TRAWL_TOML.replace("{folder}/files", files or f"{folder}/files"))
    with WatchedSite() as site, WatchedSite() as other:
        shop(site, other)
        more = {"TRAWL_NODE_CRAWLERS": "4", "TEST_FEEDS": str(folder / "feeds")}
        with project_fleet(folder, "shop_settings", "fine=0", site.url, **more) as fleet:
            yield fleet, site


def ended(fleet: PlainFleet, run: str) -> GroupRun:
    store = GroupRuns(fleet.redis.client())

    def state() -> str:
        return f"{store.all().get(run)}; crawl: {store.crawling(run)}\n{fleet.said()}"

    wait_until(lambda: (found := store.all().get(run)) is not None and found.state.ended, state, 120)
    return store.all()[run]


def verdicts(fleet: PlainFleet, run: str) -> dict[str, Any]:
    shown = json.loads(fleet.trawl("runs", "show", run, "--json"))
    return {one["spider"]: one for one in shown["members"]}


def check_files(fleet: PlainFleet, folder: Path, run: str, found: dict[str, Any]) -> None:
    stored = folder / "files" / "shops" / run
    wait_until(lambda: (stored / "manifest.json").exists() and not (stored / ".parts").exists(), fleet.said, 60)
    rows = [json.loads(line) for line in (stored / "chain.jsonl").read_text().splitlines()]
    assert sorted(rows, key=str) == sorted(
        ({"name": f"n{n}", "price": f"{n}", "by": "chain"} for n in range(1, CHAIN + 1)), key=str
    )
    feed = json.loads((folder / "feeds" / "chain.geojson").read_text())
    assert sorted((one["properties"] for one in feed["features"]), key=str) == sorted(rows, key=str)
    manifest = json.loads((stored / "manifest.json").read_text())
    assert {one["spider"]: one["verdict"] for one in manifest["members"]} == {name: one["verdict"] for name, one in found.items()}
    chain = next(one for one in manifest["members"] if one["spider"] == "chain")
    assert (chain["rows"], chain["error"]) == (CHAIN, "")
    digests = {one["file"]: one["sha256"] for one in chain["files"]}
    assert digests["chain.jsonl"] == sha256((stored / "chain.jsonl").read_bytes()).hexdigest()
    assert str(folder / "feeds" / "chain.geojson") in digests
    assert (folder / "files" / "shops" / "latest").resolve() == stored
    assert not [path for path in folder.rglob("*.tmp") if "files" in path.parts or "feeds" in path.parts]


@pytest.mark.usefixtures("no_process_left")
def test_each_member_of_a_run_has_its_verdict_and_the_next_night_is_compared(tmp_path: Path) -> None:
    with shop_fleet(tmp_path) as (fleet, site):
        fleet.beat()
        node = fleet.node()
        listed = json.loads(fleet.trawl("groups", "--json").splitlines()[0])
        assert listed[0]["members"] == sorted(MEMBERS), "the module that cannot be imported costs no other spider"
        first = fleet.trawl("run", "--group", "shops").split()[0]
        again = fleet.trawl("run", "--group", "shops").split()[0]
        assert again == first, "a run is skipped while the last one goes on"
        os.kill(fleet.crawler(f"chain.{first}/0").pid, signal.SIGKILL)
        parts = tmp_path / "files" / "shops" / first / ".parts" / "chain"
        wait_until(lambda: parts.exists(), fleet.said, 60)
        with heard_out(client := fleet.redis.client(), fleet.consumer_pid()):
            node.process.kill()  # with the consumer, whose lock would live for half a minute
            node.process.wait()
        client.delete(CrawlKeys.for_spider(first, items=item_key(first)).writer())
        fleet.node("b")
        run = ended(fleet, first)
        found = verdicts(fleet, first)
        assert {name: one["verdict"] for name, one in found.items()} == {name: verdict for name, (_, verdict) in MEMBERS.items()}
        assert sum(run.counts.values()) == run.members == len(MEMBERS)
        check_files(fleet, tmp_path, first, found)
        assert (found["fine"]["items"], found["fine"]["fields"]) == (5, {"name": 1.0, "price": 1.0, "by": 1.0})
        assert "no price" in found["raising"]["reason"]
        assert "parse" in found["raising"]["traceback"]
        assert found["refused"]["url"] == f"{site.url}/refused"
        kept = [gzip.decompress(file.read_bytes()) for file in tmp_path.rglob("raw/_runs/*/*.warc.gz")]
        assert any(f"{site.url}/refused".encode() in pages for pages in kept)
        assert not list(tmp_path.rglob("raw/refused*")), "a folder for each job is one that nothing deletes"

        # the second night: prices are gone, and few items are left
        site.pages["/fine"] = Page("".join(f"<li><b>n{n}</b></li>" for n in range(5)))
        site.pages["/fine/2"] = Page("nothing", 404)
        site.pages["/empty"] = rows("1")
        second = fleet.trawl("run", "--group", "shops").split()[0]
        ended(fleet, second)
        found = verdicts(fleet, second)
        assert (found["fine"]["verdict"], found["fine"]["reason"]) == ("field_gone", "price: 0% of the items, 100% before")
        assert found["empty"]["verdict"] == "fine"
        query = "SELECT run, verdict, scraped AS items FROM run_members WHERE spider = 'fine' ORDER BY ended_at DESC"
        stored = lambda: [json.loads(line) for line in fleet.trawl("sql", query, "--json").splitlines()]  # noqa: E731
        wait_until(lambda: len(stored()) == 2, fleet.said, 60)
        assert stored() == [
            {"run": second, "verdict": "field_gone", "items": found["fine"]["items"]},
            {"run": first, "verdict": "fine", "items": 5},
        ]
        failed = fleet.trawl("runs", "rerun", second, "--failed").split()[0]
        third = ended(fleet, failed)
        assert third.members == sum(not verdict_is_sound(one["verdict"]) for one in found.values())


def verdict_is_sound(verdict: str) -> bool:
    return verdict in ("fine", "nothing_due", "own_limit")
