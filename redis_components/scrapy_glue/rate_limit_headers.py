"""What a site's headers say of its limit: `RateLimit` (IETF draft, both forms), `RateLimit-*` and `X-RateLimit-*`."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy.http import Headers

LONGEST_S = 86_400.0
_PREFIXES = ("RateLimit-", "X-RateLimit-", "X-Rate-Limit-")
_PARTS = re.compile(r"(?:^|[;,\s])(remaining|reset|r|t)\s*=\s*(\d{1,12}(?:\.\d{1,6})?)(?=$|[;,\s])")
_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,6})?")
_EPOCH = 1_000_000_000  # a reset beyond it is a time and not a number of seconds
_LONG = 1024


def used_up_s(headers: Headers, now: float | None = None) -> float | None:
    """For how many seconds nothing is left of the site's limit, between one second and a day; None where something is, or where
    no header can be read. With several policies in one header the one that lasts longest counts.
    """
    if not any(b"Rate" in name for name in headers):  # their names are in title case; most sites send none of these
        return None
    waits = [*_structured(_text(headers, "RateLimit"))]
    for prefix in _PREFIXES:
        remaining, reset = (_number(_text(headers, prefix + name)) for name in ("Remaining", "Reset"))
        if remaining is not None and remaining < 1 and reset is not None:
            waits.append(reset)
    if not waits:
        return None
    clock = time.time() if now is None else now
    return min(max(max(wait - clock if wait > _EPOCH else wait for wait in waits), 1.0), LONGEST_S)


def _structured(text: str) -> list[float]:
    """`limit=100, remaining=0, reset=30`, or `"burst";r=0;t=5, "day";r=12;t=800`."""
    if "remaining" in text:
        found = {name: float(value) for name, value in _PARTS.findall(text)}
        return [found["reset"]] if found.get("remaining", 1) < 1 and "reset" in found else []
    waits = []
    for policy in text.split(","):
        found = {name: float(value) for name, value in _PARTS.findall(policy)}
        if found.get("r", 1) < 1 and "t" in found:
            waits.append(found["t"])
    return waits


def _text(headers: Headers, name: str) -> str:
    return (headers.get(name) or b"")[:_LONG].decode("latin-1").lower()


def _number(text: str) -> float | None:
    found = _NUMBER.fullmatch(text.strip())
    return float(found[0]) if found else None
