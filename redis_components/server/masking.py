"""Hides secrets in what is shown: values whose name says what they are, and logins in URLs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

SECRET_NAME = r"[\w-]*(?:pass|pwd|secret|token|auth(?!or)|bearer|cookie|session|key|credential|signature)[\w-]*"  # noqa: S105
"""Of a variable, an argument or an option."""
HIDDEN = "***"

_IS_SECRET = re.compile(SECRET_NAME, re.IGNORECASE)
_LOGIN = re.compile(r"(?<=://)([^\s:/@'\"]{0,200}):[^\s/@'\"]{1,500}@")
_TEXT = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_PAIR = re.compile(rf"(['\"]{SECRET_NAME}['\"]\s*:\s*)(?:{_TEXT}|\[[^\]]*\]|\{{[^}}]*\}}|[^,}}\]]+)", re.IGNORECASE)


def masked_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by name, those of secrets hidden, logins of URLs within the others too."""
    return {name: HIDDEN if _IS_SECRET.fullmatch(name) else _in_value(value) for name, value in values.items()}


def masked_text(text: str) -> str:
    """A text with hidden passwords of URLs, and hidden values of what it names like a secret, as in `{'token': '***'}`."""
    return _LOGIN.sub(rf"\1:{HIDDEN}@", _PAIR.sub(rf"\1'{HIDDEN}'", text))


def _in_value(value: Any) -> Any:
    return _LOGIN.sub(rf"\1:{HIDDEN}@", value) if isinstance(value, str) else value
