"""The actions of the forum crawl: seed and rescan boards, make and remove alerts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import redis

from forums.state.alerts import Alert, Alerts, shown_address
from monitoring.pages.actions import Given, actions_of
from redis_components.errors import ConfigError

from .search import whole_installation

if TYPE_CHECKING:
    from forums.scheduling.seeding import Outcome


def _outcomes(found: Mapping[str, Outcome]) -> Iterable[str]:
    from forums.scheduling.seeding import nothing_seeded, sentences  # with Scrapy, which the exporter's own image lacks

    if not found:
        raise ConfigError("there is no site file: trawl sites new URL writes one")
    refused = [name for name, one in found.items() if one.kind.is_refused]
    if len(refused) == len(found):
        raise ConfigError("; ".join(f"{name}: {found[name].sentence}" for name in refused))
    return filter(None, [nothing_seeded(found), *(f"{name}: {sentence}" for name, sentence in sentences(found).items())])


def _seed(client: redis.Redis, given: Given, by: str) -> Iterable[str]:  # noqa: ARG001
    with whole_installation("trawl seed"):
        from forums.scheduling import seeding
    found = seeding.seed(client, given.text("forums").split() or None, given.text("site") or None, given.is_on("force"))
    return _outcomes(found)


def _rescan(client: redis.Redis, given: Given, by: str) -> Iterable[str]:  # noqa: ARG001
    with whole_installation("trawl forums rescan"):
        from forums.scheduling import seeding
    forums = given.text("forums").split()
    return _outcomes(seeding.rescan(client, forums, given.text("site") or None, given.whole("depth")))


def _alert(client: redis.Redis, given: Given, by: str) -> Iterable[str]:
    with whole_installation("trawl alert"):
        from forums.events.alerts import add
    alert = Alert(
        match=given.text("match"),
        to=given.text("to"),
        site=given.text("site"),
        digest_minutes=given.whole("digest-minutes") or 0,
        quiet_hours=given.text("quiet"),
        history=given.is_on("history"),
        by=by,
    )
    number, made = add(client, alert)
    lines = [f"alert {number}: a test message was sent to {shown_address(made.to)}; posts follow as they are stored"]
    if made.to == "stdout":
        lines.append("the test stands in the output of the process that serves this page, the posts in that of the worker")
    if made.to.startswith("http"):
        lines.append(f"its requests are signed (Standard Webhooks) with {made.secret}: keep it, it is not shown again")
    return lines


def _unalert(client: redis.Redis, given: Given, by: str) -> Iterable[str]:  # noqa: ARG001
    number = given.whole("number") or 0
    Alerts(client).remove(number)
    return [f"alert {number} is removed"]


ACTIONS = actions_of(
    Path(__file__).with_name("actions.toml"), {"alert": _alert, "unalert": _unalert, "seed": _seed, "rescan": _rescan}
)
