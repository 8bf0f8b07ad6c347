"""A process or a machine without a free descriptor: no page is to blame, so a download waits instead of being given up."""

from __future__ import annotations

import asyncio
import errno
import logging
import time

AGAIN_S = 0.5
LOG_AGAIN_S = 60.0
_NONE_LEFT = frozenset({errno.EMFILE, errno.ENFILE})
_logged_at = float("-inf")

logger = logging.getLogger(__name__)


def none_left(error: BaseException | None) -> bool:
    """Return True if an error, or its cause, is "too many open files"."""
    for _ in range(10):
        if error is None:
            return False
        if isinstance(error, OSError) and error.errno in _NONE_LEFT:
            return True
        error = error.__cause__ or error.__context__
    return False


async def wait_for_one() -> None:
    """Wait a little; log the reason once a minute."""
    global _logged_at
    if time.monotonic() - _logged_at > LOG_AGAIN_S:
        _logged_at = time.monotonic()
        logger.error("too many open files: downloads wait until some are closed; raise the limit (ulimit -n, LimitNOFILE)")
    await asyncio.sleep(AGAIN_S)
