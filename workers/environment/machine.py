"""The number of crawlers that this machine can host: by its cores and its memory, as far as this process may use them."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

PER_CORE = 4  # crawlers: each waits for sites and Redis most of the time
CRAWLER_BYTES = 192 * 1024 * 1024
"""A forum crawler has 120 to 200 MB, of which it shares 45 with the process that it is forked from, and a pool process of 36;
CRAWLER_MEMORY_SOFT_MB is where it is replaced.
"""
WORKER_MB = 400  # Celery's main process and its pool, measured: 215 to 312 MB
LEAST_SHARE_MB = 384
MOST_SPARE = 16  # places that are made without being asked for: each costs a process of 30 MB from the start
_MEMORY = Path("/proc/meminfo")
_CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def cores() -> int:
    """Count the cores that this process may run on."""
    with suppress(AttributeError, OSError):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_bytes() -> int:
    """Return the memory of the machine, or of the container if that is less."""
    total = _of_machine()
    for path in _CGROUP_LIMITS:
        with suppress(OSError, ValueError):  # not in a cgroup; `max`: no limit
            total = min(total, int(path.read_text()))
    return total


def crawlers_in_memory(memory: int) -> int:
    """Return the number of crawlers that fit into `memory` bytes; at least one."""
    return max(1, memory // CRAWLER_BYTES)


def container_bytes() -> int | None:
    """Return the memory that this container may use; None where there is no limit below the machine's memory."""
    limit = memory_bytes()
    return limit if limit < _of_machine() else None


def _of_machine() -> int:
    with suppress(OSError, ValueError, IndexError):  # `MemTotal:  8123456 kB`
        return int(_MEMORY.read_text().split(None, 2)[1]) * 1024
    import psutil  # not on Linux; `trawl status` asks, and this takes 7 ms

    total: int = psutil.virtual_memory().total
    return total


def memory_share_mb(crawlers: int, memory: int | None, *, most: int = 2048) -> int:
    """MiB after which one of so many crawlers in a container of `memory` bytes is ended; `most` where it has no limit.

    So one that grows ends before the kernel has to end a process of the container. At least `LEAST_SHARE_MB`.
    """
    if memory is None:
        return most
    return min(most, max(LEAST_SHARE_MB, ((memory >> 20) - WORKER_MB) // max(1, crawlers)))


def places(cores: int, memory: int) -> int:
    """Return the default number of crawlers of a machine: 1 to `MOST_SPARE`."""
    return min(PER_CORE * max(1, cores), crawlers_in_memory(memory), MOST_SPARE)
