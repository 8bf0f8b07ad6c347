"""A site that lists threads and forums without end: its own are left for later, and what it costs all others has a bound."""

from __future__ import annotations

import pytest
import redis

from forums.spiders.forum_list import MOST_UNREAD
from forums.state.keys import ForumStates
from forums.storage import parse
from forums.writer import store
from redis_components.keys import CrawlKeys
from tests.attacks.two_sites import TwoSites
from tests.support.items import forum, wire
from tests.support.watched_site import Page
from workers.state.registry import Registry


def test_a_site_with_too_many_unread_threads_is_not_listed_further_until_some_are_read(sites: TwoSites) -> None:
    sites.declare()
    rows = [{"id": f"new{n}", "title": "new", "url": f"/t/{n}", "replies": 0} for n in range(20)]
    sites.mine.pages["/list/f"] = Page({"threads": rows, "next": f"{sites.mine.url}/list/f?2"})
    sites.mine.pages["/list/f?2"] = Page({"threads": [rows[0] | {"id": "older"}]})
    details = CrawlKeys.for_spider("forum_detail")
    order = details.overflow_order()
    for start in range(0, MOST_UNREAD, 20_000):
        unread = {b"mine\0" + n.to_bytes(8) + b"mine/%d" % n: 0 for n in range(start, start + 20_000)}
        sites.client.zadd(order, unread)  # type: ignore[arg-type]
    sites.client.zadd(order, {b"mine2\0" + bytes(8) + b"mine2/1": 0, b"min\0" + bytes(8) + b"min/1": 0})  # type: ignore[arg-type]
    for full in (True, False):
        sites.scan()
        sites.crawl("forum_list")
        (report,) = [item for item in sites.items("forum_list") if item["kind"] == "scan"]
        assert (report["outcome"], report["pages"]) == (("failed", 0) if full else ("complete", 2)), report
        assert ("100,000 threads of this site wait to be read" in str(report["reason"])) is full
        assert sites.client.llen(details.start_tasks()) == (0 if full else 21)
        assert sites.mine.paths().count("/list/f?2") == (not full), "no further page is asked for"
        sites.client.delete(order)
        sites.client.delete(CrawlKeys.for_spider("forum_list").item_stream())


def test_of_an_index_without_end_so_many_forums_are_watched_and_other_sites_keep_theirs(
    redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MOST_FORUMS", 3)

    def named(site: str, *ids: str, name: str = "a name") -> None:
        store.learn(redis_client, [parse(wire(forum(site=site, id=one, name=name))) for one in ids])

    states = ForumStates(redis_client)
    named("evil", "f0", "f1")
    named("evil", *(f"f{n}" for n in range(50)), name="another name")
    named("good", "g0", "g1")
    found = states.all()
    assert [name for name in found if name.startswith("good/")] == ["good/g0", "good/g1"]
    assert {name: one.name for name, one in found.items() if name.startswith("evil/")} == dict.fromkeys(
        ("evil/f0", "evil/f1"), "another name"
    )
    (said,) = Registry(redis_client).errors()
    assert (said.where, said.what) == (
        "site evil",
        "its index names more than 3 forums: 47 more are not watched; narrow [discover]",
    )
