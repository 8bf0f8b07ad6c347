"""Giving a lock back to a Redis that is away or refuses at that moment."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

import redis

from redis_components.connection import is_servers_state

AGAIN_S = 0.2

logger = logging.getLogger(__name__)


def give_back(release: Callable[[], object], name: str, *, held_s: float) -> None:
    """Call `release`, which may be repeated; where Redis does not take it, a thread does until the lock expires after `held_s`.

    The next round of a task runs in another process of the pool as often as not, and would find the lock taken until then.
    """
    try:
        release()
    except redis.RedisError as error:
        logger.warning("%s could not be given back: %s", name, error)
        if is_servers_state(error):  # else it expired, and another process may have it
            threading.Thread(target=_again, args=(release, name, time.monotonic() + held_s), daemon=True).start()


def _again(release: Callable[[], object], name: str, until: float) -> None:
    while time.monotonic() < until:
        time.sleep(AGAIN_S)
        try:
            release()
        except redis.RedisError as error:
            if not is_servers_state(error):
                logger.debug("%s is not given back: %s", name, error)
                return
        else:
            return
