"""Finds the line of a crawler's log that says why it ended."""

from __future__ import annotations

import re
from collections.abc import Sequence

_RAISED = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Fault|Unavailable|Interrupt)\b(?:: .*)?$")  # below a traceback
_LOGGED = re.compile(r"\b(?:ERROR|CRITICAL)\b|^trawl: ")


def error_line(lines: Sequence[str]) -> str | None:
    """The last line that names an error: what a traceback ends with, a logged error, else the last line; None of nothing."""
    said = [line.strip() for line in lines if line.strip()]
    for tells in (_RAISED.match, _LOGGED.search):
        if found := next((line for line in reversed(said) if tells(line)), None):
            return found
    return said[-1] if said else None
