"""A file without a name, for data that a process passes to its child: no other process can open it, and it needs no disk."""

from __future__ import annotations

import os
import tempfile


def private_memory(name: str) -> int:
    """Return a new descriptor, to be closed by the caller. `name` is shown in `/proc/PID/fd`; it opens nothing."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
