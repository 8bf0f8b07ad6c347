"""`trawl status --watch --json` outlives an outage of Redis, as the screen does."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from cli.commands import status
from redis_components.errors import RedisUnavailable


def test_a_watch_in_json_goes_on_while_redis_is_away(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def looks() -> Iterator[BaseException | None]:
        yield RedisUnavailable("it is away")
        yield None  # no Redis that could know a fleet
        yield KeyboardInterrupt()

    seen = looks()

    def look() -> None:
        if (raised := next(seen)) is not None:
            raise raised

    monkeypatch.setattr(status, "look", look)
    assert status.status(as_json=True, watch=True, every=0.0, everything=False) == 0
    away, nothing = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (away["running"], nothing["running"]) == (False, False)
    assert "it is away" in away["error"]
    assert "error" not in nothing
