"""Finds the line of a crawler's log that gives the reason of its end."""

from __future__ import annotations

import re
from collections.abc import Sequence

_RAISED = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Fault|Unavailable|Interrupt)\b(?:: .*)?$")  # below a traceback
_LOGGED = re.compile(r"\b(?:ERROR|CRITICAL)\b|^trawl: ")


def error_line(lines: Sequence[str]) -> str | None:
    """Return the last line that names an error: the end of a traceback, a logged error, else the last line; None
    without lines.
    """
    shown = [line.strip() for line in lines if line.strip()]
    for matches in (_RAISED.match, _LOGGED.search):
        if found := next((line for line in reversed(shown) if matches(line)), None):
            return found
    return shown[-1] if shown else None
