"""The actions of the forum crawl: seed and rescan boards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import redis

from forums.scheduling.seeding import Outcome, sentences
from monitoring.pages.actions import SITE, Action, Field, Given
from redis_components.errors import ConfigError

from .search import whole_installation

FORUMS = Field(name="forums", label="Boards", hint="their ids, with spaces between them")


def _outcomes(found: Mapping[str, Outcome]) -> Iterable[str]:
    if not found:
        raise ConfigError("there is no site file: trawl sites new URL writes one")
    refused = [name for name, one in found.items() if one.kind.is_refused]
    if len(refused) == len(found):
        raise ConfigError("; ".join(f"{name}: {found[name].sentence}" for name in refused))
    return [f"{name}: {sentence}" for name, sentence in sentences(found).items()]


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


ACTIONS = {
    "seed": Action(
        title="Seed",
        follows="Boards are queued for a scan: those named, else those that are due within their site's budget.",
        fields=(SITE, FORUMS, Field(name="force", label="Also boards that are not due yet, beyond the budget", kind="switch")),
        do=_seed,
    ),
    "rescan": Action(
        title="Rescan",
        follows="The boards are scanned now, deeper than usual. The depth costs that many requests, beyond the site's budget.",
        fields=(
            SITE,
            Field(name="forums", label="Boards", needed=True, hint=FORUMS.hint),
            Field(name="depth", label="List pages", kind="number", hint="empty: down to what was seen before"),
        ),
        do=_rescan,
    ),
}
