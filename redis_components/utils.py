"""Small functions that spiders written for scrapy-redis import."""

from __future__ import annotations

import json
from typing import Any


class TextColor:
    """Terminal codes for coloured text."""

    HEADER = "\033[95m"
    OKBLUE = "\033[94m"
    OKCYAN = "\033[96m"
    OKGREEN = "\033[92m"
    WARNING = "\033[93m"
    FAIL = "\033[91m"
    ENDC = "\033[0m"
    BOLD = "\033[1m"
    UNDERLINE = "\033[4m"


def bytes_to_str(s: Any, encoding: str = "utf-8") -> Any:
    """Return bytes as text; anything else as it is."""
    return s.decode(encoding) if isinstance(s, bytes) else s


def is_dict(string_content: str) -> bool:
    """Return True if the text is JSON of any kind, not only an object: spiders rely on scrapy-redis's result."""
    try:
        json.loads(string_content)
    except json.JSONDecodeError:
        return False
    return True


def convert_bytes_to_str(data: Any, encoding: str = "utf-8") -> Any:
    """Return bytes as text, also inside of dicts and tuples; anything else as it is."""
    if isinstance(data, bytes):
        return data.decode(encoding)
    if isinstance(data, dict):
        return {convert_bytes_to_str(key, encoding): convert_bytes_to_str(value, encoding) for key, value in data.items()}
    if isinstance(data, tuple):
        return tuple(convert_bytes_to_str(value, encoding) for value in data)
    return data
