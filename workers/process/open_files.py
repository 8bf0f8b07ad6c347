"""Limits the number of open files; many shells allow 1,024, some 64. A process may raise its own limit up to the machine's, and
its child processes inherit it.
"""

from __future__ import annotations

import resource

from redis_components.errors import ConfigError

ENOUGH = 65_536
CRAWLER = 128
"""Files of a crawler: some 40 before its first page, and one for each page in flight."""
_EACH_CRAWLER, _ALONE = 9, 100  # descriptors of a worker's main process: pipes, events and queues of each pool process


def require_for_worker(crawlers: int) -> None:
    """Raise the limit of this process to what the main process of a worker opens at its start. Raises ConfigError."""
    require(_EACH_CRAWLER * crawlers + _ALONE, f"a worker with {crawlers} crawlers")


def require(needed: int, by: str) -> None:
    """Raise the limit of this process. Raises ConfigError where it stays too low for what `by` needs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    if soft != resource.RLIM_INFINITY and soft < needed:
        raise ConfigError(
            f"{soft:,} files may be open (ulimit -n), {by} needs {needed:,}: raise the limit (ulimit -Hn, LimitNOFILE)"
        )
