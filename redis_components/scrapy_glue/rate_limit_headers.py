"""The limits in a site's headers: `RateLimit` (IETF draft, both forms), `RateLimit-*` and `X-RateLimit-*`."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from redis_components.frontier.retry_after import http_date

if TYPE_CHECKING:
    from scrapy.http import Headers

LONGEST_S = 86_400.0
_PREFIXES = ("RateLimit-", "X-RateLimit-", "X-Rate-Limit-")
_RESETS = ("Reset-After", "Reset")  # Discord sends both, the first one in seconds
_NAME = re.compile(r'"(?:[^"\\]|\\.){0,100}"')  # of a policy
_PARTS = re.compile(r"(?:^|[;,\s])(remaining|reset|r|t)\s*=\s*(\d{1,13}(?:\.\d{1,6})?)(?=$|[;,\s])")
_NUMBER = re.compile(r"\d{1,13}(?:\.\d{1,6})?")
_EPOCH, _EPOCH_MS = 1_000_000_000, 100_000_000_000  # a reset beyond it is a time and not a number of seconds
_LONG = 1024


def used_up_s(headers: Headers, now: float | None = None) -> float | None:
    """Return the seconds for which the site's limit is used up, between one second and a day; None where it is not, or where no
    header can be read. With several policies in one header the one that lasts longest counts. A time is read by the site's own
    clock, where it sends the header `Date`.
    """
    if not any(b"Rate" in name for name in headers):  # their names are in title case; most sites send none of these
        return None
    waits = _structured(_readable(b", ".join(headers.getlist("RateLimit"))))  # several lines are one list
    for prefix in _PREFIXES:
        remaining = _number(_text(headers, prefix + "Remaining"))
        if remaining is not None and remaining < 1:
            resets = (_reset(_text(headers, prefix + name)) for name in _RESETS)
            waits += [reset for reset in resets if reset is not None][:1]
    if not waits:
        return None
    clock = http_date(_text(headers, "Date")) or (time.time() if now is None else now)
    return min(max(max(_seconds(wait, clock) for wait in waits), 1.0), LONGEST_S)


def _structured(text: str) -> list[float]:
    """Parse `limit=100, remaining=0, reset=30`, or `"burst";r=0;t=5, "day";r=12;t=800`."""
    text = _NAME.sub("", text)
    found = {name: float(value) for name, value in _PARTS.findall(text)}
    if "remaining" in found:
        return [found["reset"]] if found["remaining"] < 1 and "reset" in found else []
    waits = []
    for policy in text.split(","):
        found = {name: float(value) for name, value in _PARTS.findall(policy)}
        if found.get("r", 1) < 1 and "t" in found:
            waits.append(found["t"])
    return waits


def _seconds(wait: float, clock: float) -> float:
    """Return the seconds of a number of seconds, or of a time in seconds or milliseconds."""
    if wait > _EPOCH_MS:
        wait /= 1000
    return wait - clock if wait > _EPOCH else wait


def _text(headers: Headers, name: str) -> str:
    return _readable(headers.get(name) or b"")


def _readable(value: bytes) -> str:
    return value[:_LONG].decode("latin-1").lower()


def _number(text: str) -> float | None:
    found = _NUMBER.fullmatch(text.strip())
    return float(found[0]) if found else None


def _reset(text: str) -> float | None:
    """Return a number, or a date in the form of HTTP or of ISO 8601 (as some send them)."""
    if (number := _number(text)) is not None:
        return number
    try:
        date = datetime.fromisoformat(text.strip().upper())
    except ValueError:
        return http_date(text)
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
