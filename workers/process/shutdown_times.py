"""Time limits of a shutdown, all derived from one number: a crawler's grace period.

crawler     pages in flight get `shutdown_grace()` (TRAWL_SHUTDOWN_GRACE_S, Scrapy's setting SHUTDOWN_GRACE)
supervisor  kills it after `supervisor_s` of that, then gives the slot back
worker      waits for its supervisors for `node_s` (Celery's worker_soft_shutdown_timeout)
container   is killed after `container_s` (compose's stop_grace_period)
"""

from __future__ import annotations

from workers.environment.declaration import variable_name
from workers.environment.variables import Fleet

SHUTDOWN_GRACE_S: float = Fleet.declared()["shutdown_grace_s"].default
MARGIN_S = 3.0  # a crawler's last exchange, its farewell to a Redis with AOF, and its end
RELEASE_TIMEOUT_S = 5.0  # longest wait for Redis to take a slot back; without an answer the slot expires later
VARIABLE = variable_name("shutdown_grace_s")


def shutdown_grace() -> float:
    """Return the seconds for the pages in flight at a crawler's shutdown. Raises ConfigError."""
    return Fleet.read().shutdown_grace_s


def supervisor_s(grace_s: float) -> float:
    """Return the seconds from SIGTERM to SIGKILL of a crawler with this grace."""
    return grace_s + MARGIN_S


def node_s(grace_s: float) -> float:
    """Return the seconds from a worker's order to its supervisors to end until it ends without waiting for them."""
    return supervisor_s(grace_s) + RELEASE_TIMEOUT_S + 2.0


def container_s(grace_s: float) -> float:
    """Return the seconds from SIGTERM to SIGKILL of a container: a warm and a soft shutdown may come before, on a
    busy machine.
    """
    return 3 * node_s(grace_s)
