"""The time a process has waited for a CPU. On a busy machine its heartbeats are late, and it is not to blame."""

from __future__ import annotations

from pathlib import Path


def waited_s(pid: int) -> float:
    """Return the seconds since its start in which the main thread of `pid` could have run and had no CPU; 0.0 where unknown.

    The second number of /proc/PID/schedstat (Linux, CONFIG_SCHED_INFO): time on a run queue, ns.
    """
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text("ascii").split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
