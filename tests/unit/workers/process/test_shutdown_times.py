"""Each waits longer than the one below it, by one number."""

from __future__ import annotations

import pytest

from redis_components.errors import ConfigError
from workers.process.exit_kinds import RELEASE_TIMEOUT_S, container_s, node_s, shutdown_grace, supervisor_s


def test_every_wait_follows_from_that_of_a_crawler(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (shutdown_grace(), supervisor_s(10), node_s(10), container_s(10)) == (10, 13, 20, 60)
    monkeypatch.setenv("TRAWL_SHUTDOWN_GRACE_S", "60")
    for grace_s in (0.0, shutdown_grace(), 3600.0):
        released_s = supervisor_s(grace_s) + RELEASE_TIMEOUT_S
        assert grace_s < released_s < node_s(grace_s) < container_s(grace_s)


@pytest.mark.parametrize("text", ["", "soon", "-1", "nan", "inf", "3601"])
def test_what_is_no_time_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("TRAWL_SHUTDOWN_GRACE_S", text)
    with pytest.raises(ConfigError, match="TRAWL_SHUTDOWN_GRACE_S="):
        shutdown_grace()
