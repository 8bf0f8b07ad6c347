"""Services that `trawl up` or the demo of a test starts, by fork: worker, beat, Flower and exporter start cold for 4 s of CPU.

`fork_services` is called in a process that `tests.support.warm_start` has forked, before it runs its program. It forks a process
that stays as it is, from which services are forked later. `make test-all` starts each of them cold.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any

from redis_components.embedded.die_with_parent import tied

from . import forked_crawlers, warm_start
from .warm_process import become, in_new_process, show
from .warm_start import OWN_MODULE, fork_children


def fork_services(paths: list[str]) -> dict[str, object] | None:
    """None in this process; in that of a service, later, what it shall run."""
    here, there = socket.socketpair()
    if os.fork():
        there.close()
        warm_start.fork_from(here)
        fork_children(_service)
        return None
    here.close()
    os.setsid()  # what a terminal tells the program is not for this process
    show(["services"], {}, apart=True)
    request = in_new_process(there)
    become(request, paths)
    return request


def fork_forums() -> None:
    """From now on this process, a test's, forks the demo's forum, checks of services, rehearsals and lists of spiders, from the
    family.
    """
    from fleet_operations.jobs import spider_list

    fork_children(_of_a_test)
    vars(spider_list)["subprocess"] = warm_start


def _service(asked: Mapping[str, Any], files: Sequence[int]) -> int | None:
    """The pid of a forked one of Trawl's own modules that ends with this process, or of a forked check."""
    command, begin = list(asked["args"]), tied()
    own = command[len(begin) :]
    if command[: len(begin)] != begin or own[1:3] != ["-P", OWN_MODULE]:
        return forked_crawlers.fork(asked, files, forked_crawlers.CHECKS)
    return warm_start.forked({**asked, "args": own}, files, "cli.main", parent=os.getpid())


def _of_a_test(asked: Mapping[str, Any], files: Sequence[int]) -> int | None:
    command, begin = list(asked["args"]), tied()
    own = command[len(begin) :] if command[: len(begin)] == begin else command
    if own[1:3] != ["-P", OWN_MODULE] or own[3] not in (
        "demo.forum",
        "fleet_operations.deploy.check_service",
        "fleet_operations.deploy.replay",
    ):
        return None  # it shows how the product starts it
    tie = {"parent": os.getpid()} if own != command else {}
    return warm_start.forked({**asked, "args": own}, files, "" if own[3] != "demo.forum" else "cli.main", **tie)
