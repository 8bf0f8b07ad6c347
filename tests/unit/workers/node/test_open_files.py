"""How many files a worker may open."""

from __future__ import annotations

import resource

import pytest

from workers.node import open_files

INFINITE = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("limits", "crawlers", "raised", "is_enough"),
    [
        ((1024, 4096), 200, 4096, True),
        ((1024, 1024), 200, None, False),
        ((1024, 1024), 16, None, True),
        ((256, 1_000_000), 200, open_files.ENOUGH, True),
        ((256, INFINITE), 200, open_files.ENOUGH, True),
        ((100_000, 100_000), 1000, None, True),
        ((INFINITE, INFINITE), 1000, None, True),
    ],
)
def test_a_worker_raises_its_limit_and_says_where_that_is_not_enough(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], crawlers: int, raised: int | None, is_enough: bool
) -> None:
    set_: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, new: set_.append(new))
    said = open_files.raise_limit(crawlers)
    assert set_ == ([] if raised is None else [(raised, limits[1])])
    assert (said == "") is is_enough
    assert is_enough or ("1,024 files" in said and "1,900" in said)
