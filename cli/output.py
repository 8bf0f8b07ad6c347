"""What commands print: JSON for programs, rich tables for people."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console

PIPE_WIDTH = 200  # columns; rich would take 80 where there is no terminal, and cut what somebody wants to grep


def console(*, stderr: bool = False) -> Console:
    """A console on standard output, or standard error; wide where that is no terminal."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, highlight=False, width=None if stream.isatty() else PIPE_WIDTH)


def print_json(value: Any) -> None:
    """One line of JSON on standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
    sys.stdout.flush()
