"""A file without a name, for what one process hands to its child: nobody else can open it, and it needs no disk."""

from __future__ import annotations

import os
import tempfile


def private_memory(name: str) -> int:
    """A new descriptor, to be closed by the caller. `name` is seen in `/proc/PID/fd`, it opens nothing."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
