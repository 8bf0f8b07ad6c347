"""How the living forum's benchmark measures: delays from sightings, and what a uniform rescan would ask for."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.support.full_rescan import requests_per_s
from benchmarks.support.sightings import Sightings, delays
from demo.compare import Piece


def truth(**more: dict[str, Any]) -> dict[str, Any]:
    nothing = {"posts": {}, "comments": {}}
    return {"published": nothing, "edited": nothing, "deleted": nothing, **more}


def seen(*sightings: tuple[float, str, bool]) -> Sightings:
    """Comment c1 with this hash, or as deleted, at these times."""
    found = Sightings()
    for at, version, deleted in sightings:
        found.see("comments", [Piece("c1", version, deleted)], at)
    return found


def test_a_publication_is_there_with_the_first_version_that_is_seen() -> None:
    happened = truth(published={"posts": {}, "comments": {"c1": 100.0, "c2": 101.0}})
    found = delays(happened, seen((103.0, "a", False), (104.0, "a", False), (109.0, "b", False)))
    assert (found.published, found.unseen) == ([3.0], 1)


def test_an_edit_is_noticed_with_its_version_or_a_later_one() -> None:
    versions = [(None, "a"), (110.0, "b"), (120.0, "c")]
    happened = truth(edited={"posts": {}, "comments": {"c1": versions}})
    assert delays(happened, seen((103.0, "a", False), (125.0, "c", False))).edited == [15.0, 5.0]
    assert delays(happened, seen((112.0, "b", False), (125.0, "c", False))).edited == [2.0, 5.0]
    missed = delays(happened, seen((112.0, "b", False)))
    assert (missed.edited, missed.unseen) == ([2.0], 1)


def test_a_deletion_is_noticed_with_the_tombstone() -> None:
    happened = truth(deleted={"posts": {}, "comments": {"c1": (130.0, "vanished", "a")}})
    assert delays(happened, seen((103.0, "a", False), (137.0, "a", True))).deleted == [7.0]
    assert delays(happened, seen((140.0, "a", False))).unseen == 1


def test_a_rescan_reads_everything_in_twice_its_mean_delay() -> None:
    assert requests_per_s([900, 1_100], mean_delay_s=5.0) == pytest.approx(100)
