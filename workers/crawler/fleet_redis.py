"""Chooses a crawler's Redis: the fleet's unless its project names another, which is logged and reported."""

from __future__ import annotations

import logging
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import redis

from redis_components.connection import connect, from_settings, name_of, names_redis
from redis_components.server.names import fleet_namespace, namespace_of
from redis_components.server.url import masked
from workers.state.keys import FleetKeys

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.settings import BaseSettings, Settings

MET_S = 60  # longer than the slowest client waits for an answer
AGAIN_S = 2.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """The Redis and namespace of a crawl that differ from its fleet's."""

    redis: str = ""  # its Redis, without a password; "": the fleet's
    namespace: str | None = None  # None: the fleet's


def hand_over(settings: Settings, spider: type[Spider], url: str) -> None:
    """Give a crawler the fleet's Redis and namespace, where neither the project nor the spider names one.

    The values get the lowest priority: settings of the project, the spider and the command line override them. A project that
    sets a part of a connection, such as REDIS_HOST, names another Redis, so REDIS_URL, which would override it, is not set.
    """
    effective = settings.copy()
    spider.update_settings(effective)
    if not names_redis(effective):
        settings.set("REDIS_URL", url, priority="default")
    if namespace := fleet_namespace():
        settings.set("REDIS_NAMESPACE", namespace, priority="default")


def find(settings: BaseSettings, url: str) -> Elsewhere:
    """Return where a crawl by these settings differs from its fleet at `url`. Asks both Redis servers, and waits for the
    fleet's.
    """
    namespace = namespace_of(settings)
    return Elsewhere(
        redis="" if settings.get("REDIS_URL") == url or _is_fleets(settings, url) else name_of(settings),
        namespace=None if namespace == fleet_namespace() else namespace,
    )


def warn(elsewhere: Elsewhere, url: str) -> None:
    """Log the difference as a warning."""
    if elsewhere.redis:
        logger.warning(
            "this crawl works in %s, which the project's settings name, and not in the fleet's Redis, %s: trawl status, the"
            " exporter, the autoscaler, trawl dead and the writer do not see its queue, items and stats, and no pause reaches it."
            " Leave REDIS_URL, REDIS_HOST, REDIS_PORT, REDIS_DB and the address in REDIS_PARAMS out of the settings to work in"
            " the fleet's",
            elsewhere.redis,
            masked(url),
        )
    if elsewhere.namespace is not None:
        logger.warning(
            "this crawl works in the namespace %r, which the project's settings name (REDIS_NAMESPACE), and not in the fleet's,"
            " %r (TRAWL_NAMESPACE); the fleet looks for its keys there",
            elsewhere.namespace,
            fleet_namespace(),
        )


def _is_fleets(settings: BaseSettings, url: str) -> bool:
    """Return True if both are one database: a value written through one address is read through the other. Names do not prove
    it.
    """
    fleet, word = connect(url), secrets.token_hex(16)
    key = FleetKeys().met(word)
    while True:
        try:
            fleet.set(key, word, ex=MET_S)
            break
        except redis.RedisError:
            time.sleep(AGAIN_S)
    try:
        found = from_settings(settings).get(key)
    except redis.exceptions.NoPermissionError:  # an account for the crawl's keys only: then the names have to do
        return name_of(settings).rpartition("@")[2] == masked(url).rpartition("@")[2]
    except Exception as error:  # it does not answer, or a client class of the project's has no such method
        logger.warning("%s cannot be asked whether it is the fleet's Redis: %s", name_of(settings), type(error).__name__)
        return False
    return found in (word, word.encode())
