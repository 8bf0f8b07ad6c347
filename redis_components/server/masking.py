"""Hides secrets in displayed text: values named like a secret, and logins in URLs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_WORDS = r"pass|pwd|secret|token|auth(?!or)|bearer|cookie|session|key|credential|signature"
SECRET_NAME = rf"(?<![\w-])(?=[\w-]*?(?:{_WORDS}))[\w-]++"
"""Of a variable, an argument or an option. A name is looked at once: one search of it, from its beginning."""
HIDDEN = "***"

_IS_SECRET = re.compile(SECRET_NAME, re.IGNORECASE)
_LOGIN = re.compile(r"(?<=://)([^\s:/@'\"]{0,200}):[^\s/@'\"]{1,500}@")
# A value that is not closed goes on to the end, which hides more and is looked for once.
_TEXT = r"'(?:[^'\\]|\\.)*+(?:'|\\?\Z)|\"(?:[^\"\\]|\\.)*+(?:\"|\\?\Z)"
_PAIR = re.compile(
    rf"(['\"]{SECRET_NAME}['\"]\s*+:\s*+)(?:{_TEXT}|\[[^\]]*(?:\]|\Z)|\{{[^}}]*(?:\}}|\Z)|[^,}}\]]+)", re.IGNORECASE | re.DOTALL
)


def masked_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by name, secrets hidden, logins of URLs within the others too."""
    return {name: HIDDEN if _IS_SECRET.fullmatch(name) else _in_value(value) for name, value in values.items()}


def masked_text(text: str) -> str:
    """Return a text with hidden passwords of URLs, and hidden values that are named like a secret, as in `{'token': '***'}`."""
    return _LOGIN.sub(rf"\1:{HIDDEN}@", _PAIR.sub(rf"\1'{HIDDEN}'", text))


def _in_value(value: Any) -> Any:
    return _LOGIN.sub(rf"\1:{HIDDEN}@", value) if isinstance(value, str) else value
