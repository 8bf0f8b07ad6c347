"""The places of a site in a crawler process."""

from __future__ import annotations

import pytest
import redis

from redis_components.scrapy_glue.page_tracker import SiteSlots
from tests.support.owner import Owner


def names(owner: Owner) -> list[str]:
    """What may be taken now, in its order; nothing of it is started."""
    taken = []
    while (lease := owner.frontier.take()) is not None:
        taken.append(lease.data.decode())
    return taken


@pytest.fixture
def owner(redis_client: redis.Redis) -> Owner:
    """A process that has leased five requests of a site and one of another."""
    one = Owner(redis_client, "one", concurrency=8).open()
    for name in ("a1", "a2", "a3", "a4", "a5", "b1"):
        one.add(name, dont_filter=True)
    one.advance()
    return one


def fill(owner: Owner, places: SiteSlots) -> list[str]:
    """Take all, as the scheduler does; what has begun."""
    begun = []
    while (lease := owner.frontier.take()) is not None:
        site = lease.data.decode()[0]
        if places.enter(site):
            begun.append(lease.data.decode())
        else:
            owner.frontier.defer(lease, site)
    return begun


def test_what_has_no_place_waits_in_its_order_and_others_go_on(owner: Owner) -> None:
    places = SiteSlots("site", {"a": 2, "b": 2}.get, owner.frontier)
    assert fill(owner, places) == ["a1", "a2", "b1"]
    assert owner.frontier.deferred("a") == 3
    assert places.room() == {"a": 1, "b": 5}
    places.leave("b")
    assert fill(owner, places) == []
    places.leave("a")
    assert fill(owner, places) == ["a3"]
    places.leave("a")
    places.leave("a")
    assert fill(owner, places) == ["a4", "a5"]
    assert owner.frontier.deferred("a") == 0


def test_a_site_without_a_limit_leaves_a_quarter_to_others(owner: Owner) -> None:
    places = SiteSlots("site", lambda site: None, owner.frontier)
    assert [places.enter("a") for _ in range(7)] == [True] * 6 + [False]


def test_what_waits_for_a_place_goes_back_when_the_crawl_closes(owner: Owner, redis_client: redis.Redis) -> None:
    fill(owner, SiteSlots("site", {"a": 1}.get, owner.frontier))
    owner.frontier.close(lambda: None)
    owner.advance()
    two = Owner(redis_client, "two", concurrency=8).open()
    assert sorted(names(two)) == ["a2", "a3", "a4", "a5"]


def test_a_host_is_read_from_the_url_where_the_request_names_none(owner: Owner) -> None:
    places = SiteSlots("host", lambda site: None, owner.frontier)
    assert places.name_of({}, "https://me@B.example:81/x?y") == "b.example:81"
    assert places.name_of({"host": "named"}, "http://b.example/") == "named"
    assert SiteSlots("site", lambda site: None, owner.frontier).name_of({}, "http://b.example/") == ""
