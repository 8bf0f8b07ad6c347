"""Versions of services' projects: which there are, which one crawlers are launched with, and what their file must be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import redis

from redis_components.server.untrusted_values import Epoch, JsonRecord, RecordStore, check_signature
from workers.state.keys import FleetKeys

SIGNED = "version"


@dataclass(frozen=True, kw_only=True)
class Version:
    """One version of a project: a wheel in the folder of wheels. Nodes install it only where its digest is this one."""

    name: str
    """The first digits of the digest: the same content is the same version."""
    file: str
    """Name of the wheel."""
    digest: str
    """SHA-256 of it, in hexadecimal."""
    project: str
    """Module of the Scrapy settings in it."""
    at: Epoch = 0.0
    by: str = ""
    note: str = ""
    """Why it was rolled back, where it was."""


@dataclass(frozen=True, kw_only=True)
class Deployment(JsonRecord):
    """The versions of one service."""

    MOST = 256 * 1024

    current: str = ""
    """The version that crawlers are launched with; "": what the nodes have installed themselves."""
    previous: str = ""
    versions: tuple[Version, ...] = ()
    """The newest last."""

    def of(self, name: str) -> Version | None:
        """Return one version."""
        return next((one for one in self.versions if one.name == name), None)

    @property
    def now(self) -> Version | None:
        """The current one."""
        return self.of(self.current) if self.current else None


class Deployments:
    """The versions of the fleet's services. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis, keys: FleetKeys | None = None) -> None:
        self._store = RecordStore(client, (keys or FleetKeys()).versions(), Deployment, signed=SIGNED)

    def of(self, service: str) -> Deployment:
        """Return the deployment of a service; an empty one where it was never deployed."""
        return self._store.get(service) or Deployment()

    def change(self, service: str, change: Callable[[Deployment], Deployment]) -> Deployment:
        """Change the deployment, also when another process changes it at the same time. Raises the errors of `change`."""
        while True:
            after = change(self.of(service))
            if self._store.swap(service, after):
                return after


def deployment_of(service: str, raw: bytes) -> Deployment:
    """Return the versions of a service. Raises ValueError."""
    check_signature(SIGNED, service, raw)
    return Deployment.from_json(raw)
