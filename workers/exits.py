"""How a crawler process can end, and what its supervisor does next: one table, and the decision made from it.

| kind      | exit code | next                    | what happened                                                |
|-----------|-----------|-------------------------|--------------------------------------------------------------|
| finished  | 0         | restart at once         | the crawl ended by itself                                    |
| stopped   | 0         | restart at once         | somebody asked it to stop, and it finished its pages         |
| crashed   | 1, others | restart with back-off   | an exception, or something it needs was not there            |
| refused   | 2         | stop                    | it cannot run as configured: unknown spider, bad option      |
| aborted   | 3         | restart at once         | it was stopped before its pages were finished                |
| hung      | 75        | restart with back-off   | its reactor did not answer; the stacks are in its log        |
| orphaned  | 76        | restart at once         | its supervisor was gone, and so it went                      |
| lost-slot | 77        | stop                    | somebody else holds its slot                                 |
| killed    | -signal   | restart with back-off   | a signal ended it: SIGKILL, out of memory, a segfault        |

A supervisor that itself asked for the end does not restart. A test compares this table with the code below.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from enum import Enum


class Next(Enum):
    """What a supervisor does after a crawler's end."""

    AT_ONCE = "restart at once"
    BACK_OFF = "restart with back-off"
    STOP = "stop"


class ExitKind(Enum):
    """A kind of end: its name, its exit code (None where the code does not tell), what comes next."""

    FINISHED = ("finished", 0, Next.AT_ONCE)
    STOPPED = ("stopped", 0, Next.AT_ONCE)
    CRASHED = ("crashed", 1, Next.BACK_OFF)
    REFUSED = ("refused", 2, Next.STOP)
    ABORTED = ("aborted", 3, Next.AT_ONCE)
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
        """The code to leave with. Raises ValueError for `killed`, which is not left but suffered."""
        if self.code is None:
            raise ValueError(f"{self.label} has no exit code")
        return self.code

    @property
    def clean(self) -> bool:
        """Whether the process gave its leases back before it ended; if not, they are taken from it (e)."""
        return self in (ExitKind.FINISHED, ExitKind.STOPPED)


_BY_CODE = {
    kind.code: kind for kind in reversed(ExitKind) if kind.code is not None
}  # 0 is `finished` unless it said it was stopping


@dataclass(frozen=True, kw_only=True)
class Exit:
    """The end of one crawler process."""

    kind: ExitKind
    code: int  # as `Popen.returncode`: negative is a signal
    lived_s: float

    @classmethod
    def of(cls, code: int, *, lived_s: float, stopping: bool = False, hung: bool = False) -> Exit:
        """Read an exit code. `stopping`: it had said that it was stopping; `hung`: it was killed because it had fallen silent."""
        if hung:
            kind = ExitKind.HUNG
        elif code < 0:
            kind = ExitKind.KILLED
        elif code == 0 and stopping:
            kind = ExitKind.STOPPED
        else:
            kind = _BY_CODE.get(code, ExitKind.CRASHED)
        return cls(kind=kind, code=code, lived_s=lived_s)

    def __str__(self) -> str:
        """For people and for `last_exit`: `finished`, `killed (SIGKILL)`, `crashed (exit code 1)`."""
        if self.kind.clean or (self.code >= 0 and self.kind is not ExitKind.CRASHED):
            return self.kind.label
        return f"{self.kind.label} ({signal_name(-self.code) if self.code < 0 else f'exit code {self.code}'})"


@dataclass(frozen=True, kw_only=True)
class RestartPolicy:
    """When to start a crawler again. An end within `quick_s` of the start is a quick one."""

    quick_s: float = 10.0
    first_wait_s: float = 0.5  # before the restart after the first quick end; doubled with each further one in a row
    max_wait_s: float = 30.0
    max_quick_failures: int = 5  # in a row; then the slot is given up as crash-looping
    jitter: float = 0.25  # so that crawlers which died together do not come back together


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What to do after a crawler's end."""

    restart: bool
    wait_s: float = 0.0
    quick_ends: int = 0  # in a row, this one included: hand it to the next `decide`
    crash_looping: bool = False

    def __str__(self) -> str:
        if self.restart:
            return f"restart in {self.wait_s:.1f} s"
        return "given up as crash-looping" if self.crash_looping else "not restarted"


def decide(end: Exit, quick_ends: int, policy: RestartPolicy, *, luck: float = 0.5) -> Decision:
    """What to do after `end`, the latest after `quick_ends` quick ones in a row; `luck` is a random number in [0, 1).

    An end after a long life costs nothing: restart at once, whatever it was. Quick ends wait longer and longer. A crawl that
    finishes quickly again and again has nothing to do; it is never given up for that.
    """
    if end.kind.then is Next.STOP:
        return Decision(restart=False)
    if end.lived_s >= policy.quick_s:
        return Decision(restart=True)
    quick_ends += 1
    if end.kind.then is Next.BACK_OFF and quick_ends >= policy.max_quick_failures:
        return Decision(restart=False, quick_ends=quick_ends, crash_looping=True)
    wait_s = min(policy.max_wait_s, policy.first_wait_s * 2.0 ** min(quick_ends - 1, 30))
    return Decision(restart=True, wait_s=wait_s * (1 + policy.jitter * (2 * luck - 1)), quick_ends=quick_ends)


def signal_name(number: int) -> str:
    """`SIGKILL` for 9; `signal 99` for one that has no name here."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
