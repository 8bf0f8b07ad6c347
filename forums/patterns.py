"""Regular expressions that operators and site files give."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import regex

PatternError = regex.error


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str, flags: int = 0) -> Any:
    """What the package `regex` makes of it. Raises PatternError, also for brackets that it cannot follow: it calls itself for
    each, and 500 of them end in RecursionError.
    """
    try:
        return regex.compile(pattern, flags)
    except RecursionError:
        raise PatternError("its brackets are nested too deep") from None
