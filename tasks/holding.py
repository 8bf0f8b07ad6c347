"""Tasks that pause, drain, stop and resume the fleet or a part of it."""

from __future__ import annotations

from collections.abc import Sequence

from redis_components.connection import connect
from redis_components.frontier.holds import HoldKind
from workers.fleet.holds import Target, hold, resume
from workers.state.holds import Held

from .app import app

BY = "a task"


@app.task(name="trawl.pause_fleet", ignore_result=False)
def pause_fleet(services: list[str] | None = None, reason: str = "") -> dict[str, str]:
    """Start no request in these services (None: in all); crawlers stay, queued requests wait. Takes effect within 2 s.

    Returns everything that is held then: `{"forum_detail": "paused by a task: the database is moved"}`. Raises ConfigError for an
    unknown service; nothing is changed then.
    """
    return _as_words(hold(connect(), _target(services), HoldKind.PAUSE, reason=reason, by=BY))


@app.task(name="trawl.drain_fleet", ignore_result=False)
def drain_fleet(services: list[str] | None = None, reason: str = "") -> dict[str, str]:
    """Accept no new work for these services (None: all); queued requests are crawled to the end. Otherwise as `pause_fleet`."""
    return _as_words(hold(connect(), _target(services), HoldKind.DRAIN, reason=reason, by=BY))


@app.task(name="trawl.stop_fleet", ignore_result=False)
def stop_fleet(services: list[str] | None = None, reason: str = "") -> dict[str, str]:
    """Stop the crawlers of these services (None: of all) gracefully until `resume_fleet`. Otherwise as `pause_fleet`."""
    return _as_words(hold(connect(), _target(services), HoldKind.STOP, reason=reason, by=BY))


@app.task(name="trawl.resume_fleet", ignore_result=False)
def resume_fleet(services: list[str] | None = None) -> dict[str, str]:
    """End every pause, drain and stop of these services (None: of the fleet, its services, slots and sites).

    Returns what is still held. Raises ConfigError for an unknown service.
    """
    return _as_words(resume(connect(), _target(services)))


@app.task(name="trawl.pause_site", ignore_result=False)
def pause_site(site: str, services: list[str] | None = None, reason: str = "") -> dict[str, str]:
    """Start no request to a site (a site file's name, or a host) in these services (None: in all). Otherwise as `pause_fleet`.

    Its queued requests are set aside and do not slow the other sites.
    """
    return _as_words(hold(connect(), _target(services, site), HoldKind.PAUSE, reason=reason, by=BY))


@app.task(name="trawl.drain_site", ignore_result=False)
def drain_site(site: str, services: list[str] | None = None, reason: str = "") -> dict[str, str]:
    """Accept no new work for a site; its queued requests are crawled to the end. Otherwise as `pause_site`."""
    return _as_words(hold(connect(), _target(services, site), HoldKind.DRAIN, reason=reason, by=BY))


@app.task(name="trawl.resume_site", ignore_result=False)
def resume_site(site: str, services: list[str] | None = None) -> dict[str, str]:
    """End every pause and drain of a site (in these services; None: in all). Returns what is still held."""
    return _as_words(resume(connect(), _target(services, site)))


def _target(services: Sequence[str] | None, site: str = "") -> Target:
    return Target(services=tuple(services or ()), site=site, whole=services is None)


def _as_words(held: Sequence[Held]) -> dict[str, str]:
    return {one.what: str(one.hold) for one in held}
