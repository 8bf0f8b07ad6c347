"""Tasks that hold the fleet, or a part of it, and let it go on."""

from __future__ import annotations

from collections.abc import Sequence

from redis_components.connection import connect
from redis_components.fleet_holds import Held
from redis_components.holds import HoldWord
from workers.holding import Target, hold, resume

from .app import app

BY = "a task"


@app.task(name="trawl.pause_fleet", ignore_result=False)
def pause_fleet(services: list[str] | None = None, reason: str = "") -> dict[str, str]:
    """Start no request in these services (None: in all); crawlers stay, what is queued waits. Takes effect within 2 s.

    Returns everything that is held then: `{"forum_detail": "paused by a task: the database is moved"}`. Raises ConfigError for an
    unknown service; nothing is changed then.
    """
    return _said(hold(connect(), _target(services), HoldWord.PAUSE, reason=reason, by=BY))


@app.task(name="trawl.drain_fleet", ignore_result=False)
def drain_fleet(services: list[str] | None = None, reason: str = "") -> dict[str, str]:
    """Let nothing new into these services (None: into all): what is queued is crawled to the end. As `pause_fleet` else."""
    return _said(hold(connect(), _target(services), HoldWord.DRAIN, reason=reason, by=BY))


@app.task(name="trawl.stop_fleet", ignore_result=False)
def stop_fleet(services: list[str] | None = None, reason: str = "") -> dict[str, str]:
    """End the crawlers of these services (None: of all) gracefully, and keep them away. As `pause_fleet` else."""
    return _said(hold(connect(), _target(services), HoldWord.STOP, reason=reason, by=BY))


@app.task(name="trawl.resume_fleet", ignore_result=False)
def resume_fleet(services: list[str] | None = None) -> dict[str, str]:
    """End every pause, drain and stop of these services (None: of the fleet, its services, slots and sites).

    Returns what is still held. Raises ConfigError for an unknown service.
    """
    return _said(resume(connect(), _target(services)))


@app.task(name="trawl.pause_site", ignore_result=False)
def pause_site(site: str, services: list[str] | None = None, reason: str = "") -> dict[str, str]:
    """Start no request to a site, a site file's name or a host, in these services (None: in all). As `pause_fleet` else.

    What is queued for it is set aside and does not slow the other sites.
    """
    return _said(hold(connect(), _target(services, site), HoldWord.PAUSE, reason=reason, by=BY))


@app.task(name="trawl.drain_site", ignore_result=False)
def drain_site(site: str, services: list[str] | None = None, reason: str = "") -> dict[str, str]:
    """Let nothing new of a site in: what is queued for it is crawled to the end. As `pause_site` else."""
    return _said(hold(connect(), _target(services, site), HoldWord.DRAIN, reason=reason, by=BY))


@app.task(name="trawl.resume_site", ignore_result=False)
def resume_site(site: str, services: list[str] | None = None) -> dict[str, str]:
    """End every pause and drain of a site (in these services; None: in all). Returns what is still held."""
    return _said(resume(connect(), _target(services, site)))


def _target(services: Sequence[str] | None, site: str = "") -> Target:
    return Target(services=tuple(services or ()), site=site, whole=services is None)


def _said(held: Sequence[Held]) -> dict[str, str]:
    return {one.what: str(one.hold) for one in held}
