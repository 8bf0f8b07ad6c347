"""How long a process has waited for a CPU. On a busy machine it says everything later, and that is not its fault."""

from __future__ import annotations

from pathlib import Path


def waited_s(pid: int) -> float:
    """Seconds since its start in which the main thread of `pid` could have run and had no CPU; 0.0 where the system does not say.

    The second number of /proc/PID/schedstat (Linux, CONFIG_SCHED_INFO): time on a run queue, ns.
    """
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text("ascii").split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
