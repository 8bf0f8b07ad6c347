"""Hours of the day in which a site is sent nothing, as text: `01:00-06:00, 12:00-13:30 Europe/Berlin`.

Redis decides by its own clock (`lua/lib/quiet.lua`), and has no time zones: it gets the zone's offsets for ten years.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from redis_components.errors import ConfigError

MINUTES = 1440
YEARS = 10
MOST_HOURS = 10
_HOURS = re.compile(r"(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})")
_EXAMPLE = 'write "01:00-06:00" or "23:00-06:00, 12:00-13:30 Europe/Berlin"'


class QuietHours(NamedTuple):
    """`hours`: (first minute, minute after the last) of the day; over midnight where the first is the later one. `offsets`: from
    when on (ms since 1970) `zone` is so many seconds east of UTC.
    """

    hours: tuple[tuple[int, int], ...] = ()
    zone: str = "UTC"
    offsets: tuple[tuple[int, int], ...] = ()


def parse_quiet_hours(text: str, zone: str = "UTC") -> QuietHours:
    """Parse quiet hours; `zone` holds where the text names none. Raises ConfigError."""
    times, _, named = text.strip().rpartition(" ")
    if not any(sign.isalpha() for sign in named):
        times, named = text, zone
    hours = tuple(_hours(one.strip(), text) for one in times.split(","))
    if len(hours) > MOST_HOURS:
        raise ConfigError(f"quiet hours {text!r}: more than {MOST_HOURS}")
    try:
        return QuietHours(hours, named, _offsets(named, datetime.now(UTC).year - 1))
    except (KeyError, ValueError, OSError) as error:
        raise ConfigError(f"quiet hours {text!r}: {named!r} is not a time zone: {_EXAMPLE}") from error


def quiet_now(hours: QuietHours, now: float) -> float | None:
    """Return the seconds for which they last from `now` (epoch s); None where they do not hold. The twin of `quiet_until` in
    `lib/quiet.lua`, without the seconds before them in which nothing is leased any more.
    """
    east_s = next((east for at, east in reversed(hours.offsets) if now * 1000 >= at), 0)
    minute = (now + east_s) / 60 % MINUTES
    lasting = ((last - first) % MINUTES - (minute - first) % MINUTES for first, last in hours.hours)
    return max((minutes * 60 for minutes in lasting if minutes > 0), default=None)


def written(hours: QuietHours) -> str:
    """Return the text that `parse_quiet_hours` reads; "" for none."""
    if not hours.hours:
        return ""
    times = ", ".join(f"{first // 60:02}:{first % 60:02}-{last // 60:02}:{last % 60:02}" for first, last in hours.hours)
    return f"{times} {hours.zone}"


def _hours(one: str, text: str) -> tuple[int, int]:
    found = _HOURS.fullmatch(one)
    if found is None:
        raise ConfigError(f"quiet hours {text!r} cannot be read: {_EXAMPLE}")
    from_hour, from_minute, to_hour, to_minute = map(int, found.groups())
    first, last = from_hour * 60 + from_minute, to_hour * 60 + to_minute
    if from_minute > 59 or to_minute > 59 or first >= MINUTES or last > MINUTES:
        raise ConfigError(f"quiet hours {text!r}: {one} is not between 00:00 and 24:00")
    if first == last % MINUTES:
        raise ConfigError(f"quiet hours {text!r}: {one} is the whole day; trawl pause --site SITE stops a site")
    return first, last % MINUTES


@cache
def _offsets(zone: str, year: int) -> tuple[tuple[int, int], ...]:
    """Return the offsets from the beginning of `year` on: the same for each day of a year, so that an unchanged site file gives
    the same. Raises KeyError, ValueError or OSError for an unknown time zone.
    """
    place = ZoneInfo(zone)
    found, known = [], None
    for day in range(365 * YEARS):
        begin = datetime(year, 1, 1, tzinfo=UTC) + timedelta(days=day)
        if (east := _east_s(place, begin)) != known:
            at = begin if known is None else _changed_at(place, begin)
            found.append((round(at.timestamp() * 1000), east))
            known = east
    return () if found == [(found[0][0], 0)] else tuple(found)


def _east_s(place: ZoneInfo, at: datetime) -> int:
    offset = at.astimezone(place).utcoffset()
    return round(offset.total_seconds()) if offset else 0


def _changed_at(place: ZoneInfo, day: datetime) -> datetime:
    """Return the time within the day before `day` at which its offset began, to the minute."""
    early, late, wanted = 0, MINUTES, _east_s(place, day)
    while late - early > 1:
        middle = (early + late) // 2
        if _east_s(place, day - timedelta(minutes=MINUTES - middle)) == wanted:
            late = middle
        else:
            early = middle
    return day - timedelta(minutes=MINUTES - late)
