"""How many files a worker may open: each of its crawlers takes some eight descriptors of its main process, and many shells allow
1,024. A process may raise its own limit as far as the machine lets it, and the crawlers inherit it.
"""

from __future__ import annotations

import resource

ENOUGH = 65_536
EACH_CRAWLER, ALONE = 9, 100  # descriptors of the worker's main process: pipes, events and queues of each pool process


def raise_limit(crawlers: int) -> str:
    """Raise the limit of this process; what is wrong where it stays too low for so many crawlers, "" for nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    needed = EACH_CRAWLER * crawlers + ALONE
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return ""
    fix = "raise the limit (ulimit -Hn, LimitNOFILE)"
    return f"{soft:,} files may be open, a worker with {crawlers} crawlers needs {needed:,}: {fix}"
