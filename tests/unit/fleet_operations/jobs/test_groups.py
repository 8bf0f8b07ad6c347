"""Groups in `trawl.toml`, their members, and their deadlines on the days on which clocks change."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from fleet_operations.jobs.groups import Group, check_names, deadline_at, group_entries, group_named, groups_in_file, members_of
from fleet_operations.jobs.spider_list import SpiderEntry
from redis_components.errors import ConfigError

KNOWN = [
    SpiderEntry(name="shop_a", module="p.spiders.shops.a", attributes={"owner": "ops", "item_attributes.brand": "A"}),
    SpiderEntry(name="shop_b", module="p.spiders.shops.b", attributes={"owner": "web"}),
    SpiderEntry(name="news", module="p.spiders.newsroom"),
]


@pytest.mark.parametrize(
    ("group", "members"),
    [
        (Group(spiders=("shop_*",)), ["shop_a", "shop_b"]),
        (Group(spiders=("news", "shop_b")), ["shop_b", "news"]),
        (Group(modules=("p.spiders.shops",)), ["shop_a", "shop_b"]),
        (Group(modules=("p.spiders.news",)), []),
        (Group(attributes={"owner": "ops"}), ["shop_a"]),
        (Group(attributes={"item_attributes.brand": "*"}), ["shop_a"]),
        (Group(attributes={"owner": "*", "missing": "*"}), []),
        (Group(spiders=("*",), exclude=("shop_*",)), ["news"]),
    ],
)
def test_members(group: Group, members: list[str]) -> None:
    assert members_of(group, KNOWN) == members


def test_an_unknown_spider_is_named_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"no spider 'shop_c'.*did you mean 'shop_"):
        check_names(Group(spiders=("shop_c",)), KNOWN)
    check_names(Group(spiders=("other_*",)), KNOWN)


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).astimezone(UTC).timestamp()


@pytest.mark.parametrize(
    ("deadline", "start", "end"),
    [
        ("06:00", "2026-03-28T23:00+01:00", "2026-03-29T06:00+02:00"),
        ("06:00", "2026-03-29T06:00+02:00", "2026-03-30T06:00+02:00"),
        ("06:00", "2026-10-24T23:00+02:00", "2026-10-25T06:00+01:00"),
        ("3h", "2026-10-25T01:30+02:00", "2026-10-25T03:30+01:00"),
    ],
)
def test_a_deadline_is_by_the_groups_clock(deadline: str, start: str, end: str) -> None:
    assert deadline_at(Group(deadline=deadline, timezone="Europe/Berlin"), seconds(start)) == seconds(end)


def test_wrong_groups_are_named_and_the_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file := tmp_path / "trawl.toml").write_text(
        '[groups.good]\nspiders = ["a*"]\ncron = "0 3 * * *"\ntimezone = "Europe/Berlin"\ncatch_up = false\n'
        '[groups.empty]\ncron = "0 3 * * *"\n[groups.zone]\nspiders = ["a"]\ntimezone = "Mars/Base"\n'
        '[groups.late]\nspiders = ["a"]\ndeadline = "25:00"\n[groups.typo]\nspider = ["a"]\n'
        '[groups.bounds]\nspiders = ["a"]\nbounds.a = {item = 3}\n[groups.place]\nspiders = ["a"]\nfiles = "ftp://x/y"\n'
        '[groups.never]\nspiders = ["a"]\ncron = "0 0 31 2 *"\n'
        '[groups.owned]\nspiders = ["a"]\nquota = "op"\n[groups.big]\nspiders = ["a"]\nquota = "ops"\n'
        "[quotas.ops]\nmemory_mb = 100\n"
    )
    monkeypatch.setenv("TRAWL_CONFIG", str(file))
    entries, faults = group_entries()
    assert list(entries) == ["group.good"]
    good = entries["group.good"]
    assert (good.task, good.kwargs, good.timezone, good.catch_up) == (
        "trawl.run_group",
        {"group": "good"},
        "Europe/Berlin",
        False,
    )
    wrong = ("empty", "zone", "late", "typo", "bounds", "place", "never", "owned", "big")
    assert set(faults) == {f"group.{name}" for name in wrong}
    for name, words in (
        ("empty", "no members"),
        ("zone", "Mars/Base"),
        ("late", "25:00"),
        ("typo", "did you mean 'spiders'"),
        ("bounds", "'items'"),
        ("place", "ftp"),
        ("never", "never occurs"),
        ("owned", "did you mean 'ops'"),
        ("big", "at most 100"),
    ):
        assert words in faults[f"group.{name}"], faults
    with pytest.raises(ConfigError, match="Mars/Base"):
        groups_in_file()
    file.write_text("[groups]\n")
    assert group_named("all") == Group(spiders=("*",))
    with pytest.raises(ConfigError, match="unknown group 'brands'"):
        group_named("brands")
