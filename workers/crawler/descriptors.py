"""A process or a machine without a free descriptor: no page is to blame, so a download waits instead of being given up."""

from __future__ import annotations

import asyncio
import errno
import logging
import time

AGAIN_S = 0.5
SAID_AGAIN_S = 60.0
_NONE_LEFT = frozenset({errno.EMFILE, errno.ENFILE})
_said_at = float("-inf")

logger = logging.getLogger(__name__)


def none_left(error: BaseException | None) -> bool:
    """Whether an error, or what caused it, says that there are too many open files."""
    for _ in range(10):
        if error is None:
            return False
        if isinstance(error, OSError) and error.errno in _NONE_LEFT:
            return True
        error = error.__cause__ or error.__context__
    return False


async def wait_for_one() -> None:
    """Wait a little; one line a minute says why."""
    global _said_at
    if time.monotonic() - _said_at > SAID_AGAIN_S:
        _said_at = time.monotonic()
        logger.error("too many open files: downloads wait until some are closed; raise the limit (ulimit -n, LimitNOFILE)")
    await asyncio.sleep(AGAIN_S)
