"""Task that starts a run of a group of spiders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redis_components.connection import connect
from redis_components.errors import ConfigError
from workers.jobs import runs

from .app import app


@app.task(name="trawl.run_group", ignore_result=False)
def run_group(group: str, spiders: Sequence[str] = ()) -> dict[str, Any]:
    """`run_group.delay("brands")`: start a run of a group that `trawl.toml` declares, or of `spiders` among its members.

    Returns `{"run": "brands-20261129T030000", "state": "running", "members": 40}`; where `overlap` is `skip` and its last
    run goes on, that one. Raises ConfigError for an unknown group, and for one without members.
    """
    if not isinstance(spiders, list | tuple) or not all(isinstance(one, str) for one in spiders):
        raise ConfigError(f"spiders = {spiders!r:.100}: must be a list of names")
    run = runs.start(connect(), runs.order(group, only=spiders, by="a task"))
    return {"run": run.id, "group": run.group, "state": str(run.state), "members": run.members}
