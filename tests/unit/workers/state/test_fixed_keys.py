"""The types of keys are those of their docstrings: `trawl doctor` checks keys by them."""

from __future__ import annotations

import pytest

from redis_components.keys import CrawlKeys
from workers.state.keys import FleetKeys, fixed_keys
from workers.state.quarantine import _types

TYPES = {"hash", "list", "set", "zset", "string", "stream"}


@pytest.mark.parametrize("keys", [FleetKeys(), CrawlKeys.for_spider("books")], ids=["fleet", "crawl"])
def test_each_key_has_a_type_of_redis(keys: object) -> None:
    assert len(fixed_keys(keys)) > 30
    assert all(kind for kind in fixed_keys(keys).values())


def test_doctor_checks_the_type_of_each_key_that_has_one() -> None:
    fleet, crawl = FleetKeys(), CrawlKeys.for_spider("books")
    types = _types(fleet, [crawl])
    assert {one for right in types.values() for one in right} == TYPES
    assert types[fleet.consumers()] == types[fleet.expiring()] == ("hash",)
    assert types[fleet.notes()] == ("stream",)
    assert types[fleet.waiting_slots()] == ("list",)
    assert types[crawl.start_tasks()] == ("list", "set", "zset")
    assert types[crawl.writer()] == ("string",)
    left_out = {*fixed_keys(fleet), *fixed_keys(crawl)} - types.keys()
    assert left_out == {crawl.robots_bytes(), crawl.fingerprints(), crawl.item_part()}
