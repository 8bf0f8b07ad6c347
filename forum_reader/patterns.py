"""Regular expressions from operators and site files."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import regex

PatternError = regex.error


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str, flags: int = 0) -> Any:
    """Compile a pattern with the package `regex`. Raises PatternError, also for brackets nested too deep: the compiler
    recurses for each, and 500 of them end in RecursionError.
    """
    try:
        return regex.compile(pattern, flags)
    except RecursionError:
        raise PatternError("its brackets are nested too deep") from None
