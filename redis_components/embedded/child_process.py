"""A child process with all that it starts: a separate session, which ends as one."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from .die_with_parent import tied


class ProcessGroup:
    """A process that leads the group of all that it starts."""

    pid: int
    _is_killed = False

    def kill_group(self) -> None:
        """Send SIGKILL to it and to what it has left behind, once: the number of a group that is empty may be another's."""
        if not self._is_killed:
            self._is_killed = True
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)


class ChildProcess(ProcessGroup, subprocess.Popen[Any]):
    """A program without input, in a new session: Ctrl-C in the terminal is not for it. `ends_with_us`: SIGTERM, when the thread
    ends that starts it.
    """

    def __init__(self, command: Sequence[str], *, ends_with_us: bool = False, **options: Any) -> None:
        command = tied(*command) if ends_with_us else command
        super().__init__(command, stdin=subprocess.DEVNULL, start_new_session=True, **options)

    def end(self, within_s: float) -> int | None:
        """Wait so long for its end, and kill what is left then. Return the exit code; None where it had to be killed."""
        code = None
        try:
            with suppress(subprocess.TimeoutExpired):
                code = self.wait(within_s)
        finally:
            self.kill_group()
            self.wait()
        return code

    def stop(self, within_s: float) -> None:
        """Send SIGTERM, and kill what is left after that time."""
        self.terminate()
        self.end(within_s)
