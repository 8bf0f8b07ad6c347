"""One way to try a command of Redis again: `redis_components.server.scripts.Patience`."""

from __future__ import annotations

import pytest
from redis import exceptions

from redis_components.server import scripts
from redis_components.server.scripts import FIRST_RETRY_S, SLOWEST_RETRY_S, Patience, retried

PASSING = [
    exceptions.ConnectionError("away"),
    exceptions.BusyLoadingError("LOADING"),
    exceptions.ReadOnlyError("READONLY"),
    exceptions.ClusterError("TTL exhausted."),
    exceptions.ResponseError("MISCONF no disk"),
]


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr(scripts.time, "sleep", found.append)
    return found


def test_a_command_is_tried_until_the_server_serves_it_with_growing_pauses(pauses: list[float]) -> None:
    errors = list(PASSING)

    def act() -> str:
        if errors:
            raise errors.pop()
        return "done"

    assert retried(act) == "done"
    assert pauses == [FIRST_RETRY_S, 0.2, 0.4, SLOWEST_RETRY_S, SLOWEST_RETRY_S]


def test_a_wrong_command_is_not_tried_again(pauses: list[float]) -> None:
    def act() -> None:
        raise exceptions.ResponseError("WRONGTYPE")

    with pytest.raises(exceptions.ResponseError, match="WRONGTYPE"):
        retried(act)
    assert not pauses


@pytest.mark.parametrize("error", PASSING, ids=str)
def test_its_time_ends(error: exceptions.RedisError) -> None:
    with pytest.raises(type(error)):
        Patience(0.0).pause_after(error)
