"""Services that `trawl up` or the demo of a test starts, by fork: worker, beat, Flower and exporter start cold for 4 s of CPU.

`fork_services` is called in a process that `tests.support.warm_start` has forked, before it runs its program. It forks a process
that stays as it is, from which `cli.processes.services` has its services forked later. `make test-all` starts each of them cold.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping, Sequence
from subprocess import DEVNULL, PIPE, STDOUT, TimeoutExpired  # noqa: F401 - so that this module can stand for `subprocess`
from typing import Any

from redis_components.embedded.die_with_parent import tied

from . import warm_start
from .warm_process import become, in_new_process, show
from .warm_start import OWN_MODULE, ForkingPopen


def fork_services(paths: list[str]) -> dict[str, object] | None:
    """None in this process; in that of a service, later, what it shall run."""
    here, there = socket.socketpair()
    if os.fork():
        there.close()
        warm_start.fork_from(here)
        from cli.processes import services

        vars(services)["subprocess"] = sys.modules[__name__]  # it has what the services use of it
        return None
    here.close()
    os.setsid()  # what a terminal tells the program is not for this process
    show(["services"], {}, apart=True)
    request = in_new_process(there)
    become(request, paths)
    return request


def fork_forums() -> None:
    """From now on this process, a test's, forks the demo's forum, checks of services and rehearsals, from the family."""
    from demo.forum import process
    from workers.deploy import rehearsal, service_check

    vars(process)["subprocess"] = sys.modules[__name__]
    for module in (rehearsal, service_check):
        vars(module)["subprocess"] = warm_start


class Popen(ForkingPopen):
    """`subprocess.Popen`, which forks those of Trawl's own modules that end with this process."""

    def fork(self, asked: Mapping[str, Any], files: Sequence[int]) -> int | None:
        command, begin = list(asked["args"]), tied()
        own = command[len(begin) :]
        if command[: len(begin)] != begin or own[1:3] != ["-P", OWN_MODULE]:
            return None
        return warm_start.forked({**asked, "args": own}, files, "cli.main", parent=os.getpid())
