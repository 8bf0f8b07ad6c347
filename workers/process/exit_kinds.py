"""Kinds of a crawler process's end, and the supervisor's next step after each: one table.

| kind          | exit code | next                  | what happened                                                            |
|---------------|-----------|-----------------------|--------------------------------------------------------------------------|
| finished      | 0         | restart at once       | the crawl ended without an order to stop                                 |
| drained       | 0         | stop                  | its supervisor stopped it (node leaves, fleet shrinks); pages done       |
| stopped       | 0         | restart at once       | a signal from outside the fleet stopped it; pages done                   |
| recycled      | 4         | replace at once       | as planned, its pages done: memory, age or pages at their limit; reload  |
| crashed       | 1, others | restart with back-off | an exception, or a missing dependency                                    |
| refused       | 2         | stop                  | it cannot run as configured: unknown spider, bad option or limit         |
| aborted       | 3         | restart at once       | it was stopped, and its pages were not finished in time                  |
| out-of-memory | 74        | restart with back-off | over its hard limit, or the kernel's OOM killer took it                  |
| hung          | 75        | restart with back-off | its reactor or its main thread did not answer; the stacks are in its log |
| orphaned      | 76        | restart at once       | its supervisor was gone, so it ended                                     |
| lost-slot     | 77        | stop                  | another process holds its slot                                           |
| killed        | -signal   | restart with back-off | a signal ended it: SIGKILL, a segfault                                   |

"restart at once": at once after a life of some seconds; after short ones it waits longer and longer. "replace at once": the
first short life is free of that wait. "restart with back-off": short lives are counted too, and the slot is given up after some
in a row (`workers.supervision.slot_history`). A test compares this table with the code below.

A crawler announces its kind through the pipe to its supervisor (`workers.process.pipes`) before it exits: a code that was
not announced is its spider's or project's own (`sys.exit(2)`), so the crawler has crashed.

Time limits of a shutdown all derive from one number, a crawler's grace period:

crawler     pages in flight get `shutdown_grace()` (TRAWL_SHUTDOWN_GRACE_S, Scrapy's setting SHUTDOWN_GRACE)
supervisor  kills it after `supervisor_s` of that, then gives the slot back
worker      waits for its supervisors for `node_s` (Celery's worker_soft_shutdown_timeout)
container   is killed after `container_s` (compose's stop_grace_period)
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from enum import Enum

from workers.environment.declaration import variable_name
from workers.environment.variables import Fleet


class Next(Enum):
    """A supervisor's next step after a crawler's end."""

    AT_ONCE = "restart at once"
    REPLACE = "replace at once"
    BACK_OFF = "restart with back-off"
    STOP = "stop"


_FAULTS = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE})  # of the process itself
_LONG_S = 0.5  # that a page has been at work; others take milliseconds


class ExitKind(Enum):
    """A kind of end: its name, its exit code (None where several codes are possible), the next step."""

    FINISHED = ("finished", 0, Next.AT_ONCE)
    DRAINED = ("drained", 0, Next.STOP)
    STOPPED = ("stopped", 0, Next.AT_ONCE)
    RECYCLED = ("recycled", 4, Next.REPLACE)
    CRASHED = ("crashed", 1, Next.BACK_OFF)
    REFUSED = ("refused", 2, Next.STOP)
    ABORTED = ("aborted", 3, Next.AT_ONCE)
    OUT_OF_MEMORY = ("out-of-memory", 74, Next.BACK_OFF)
    HUNG = ("hung", 75, Next.BACK_OFF)
    ORPHANED = ("orphaned", 76, Next.AT_ONCE)
    LOST_SLOT = ("lost-slot", 77, Next.STOP)
    KILLED = ("killed", None, Next.BACK_OFF)

    def __init__(self, label: str, code: int | None, then: Next) -> None:
        self.label = label
        self.code = code
        self.then = then

    @property
    def exit_code(self) -> int:
        """The exit code. Raises ValueError for `killed`, which has no exit code: a signal ended the process."""
        if self.code is None:
            raise ValueError(f"{self.label} has no exit code")
        return self.code

    def blames_page(self, code: int, lasted_s: float) -> bool:
        """Return True if an end of this kind, with this code, is the fault of the page that was processed for `lasted_s`. False
        for an ordered end, and for the last of many pages of a process that leaks memory.
        """
        return (self in (ExitKind.HUNG, ExitKind.OUT_OF_MEMORY) and lasted_s >= _LONG_S) or (
            self is ExitKind.KILLED and -code in _FAULTS
        )

    @property
    def is_fault(self) -> bool:
        """True if the process or its machine is to blame: not a planned or ordered end, or one caused by its supervisor."""
        return not self.clean and self not in (ExitKind.ABORTED, ExitKind.ORPHANED)

    @property
    def clean(self) -> bool:
        """True if the process returned its leases before it ended; otherwise the fleet reclaims them."""
        return self in (ExitKind.FINISHED, ExitKind.DRAINED, ExitKind.STOPPED, ExitKind.RECYCLED)


_BY_LABEL = {kind.label: kind for kind in ExitKind}


def kind_of_label(label: str | None) -> ExitKind | None:
    """Return the kind that a record names; None if it names none, or one of another version."""
    return _BY_LABEL.get(label or "")


@dataclass(frozen=True, kw_only=True)
class Exit:
    """The end of one crawler process."""

    kind: ExitKind
    code: int  # as `Popen.returncode`: negative is a signal
    lived_s: float
    reason: str | None = None  # details beyond the kind, for people

    @classmethod
    def of(
        cls,
        code: int,
        *,
        lived_s: float,
        announced: ExitKind | None = None,
        why: ExitKind | None = None,
        reason: str | None = None,
    ) -> Exit:
        """Read an exit code. `announced`: the end that the process reported before.

        `why` is what its supervisor knows more than the code: `drained` and `recycled` count where it obeyed, others (`hung`,
        `out-of-memory`) are why it was killed.
        """
        if code == -signal.SIGTERM and why and why.clean:
            kind = why  # the order came before the process handled signals, long before its first lease
        elif code < 0:
            kind = why if why and not why.clean else ExitKind.KILLED
        elif announced is None or announced.code != code:
            kind = ExitKind.CRASHED
        else:
            kind = why if announced is ExitKind.STOPPED and why and why.clean else announced
        return cls(kind=kind, code=code, lived_s=lived_s, reason=reason)

    def over(self, page: object) -> str:
        """Describe the end of the process over a page: `hung while reading … of site …`."""
        words = {ExitKind.HUNG: "hung", ExitKind.OUT_OF_MEMORY: "ran out of memory"}
        return f"{words.get(self.kind, 'died')} while {page}"

    def __str__(self) -> str:
        """Format the end for people and for `last_exit`: `finished`, `killed (SIGKILL)`, `crashed (exit code 1)`."""
        if self.kind.clean or (self.code >= 0 and self.kind is not ExitKind.CRASHED):
            return self.kind.label
        return f"{self.kind.label} ({signal_name(-self.code) if self.code < 0 else f'exit code {self.code}'})"


def signal_name(number: int) -> str:
    """Return `SIGKILL` for 9; `signal 99` for a number without a name here."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


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
