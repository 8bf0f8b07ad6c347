"""Which problems of the fleet somebody has to be told of now, and which are over. Pure but for `Alarms`.

A problem is told once it has lasted a minute, and told to be over when it has not been seen for two: what mends itself at once
disturbs nobody.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import redis

from forums.state.keys import ForumFleetKeys

LASTS_S = 60.0
OVER_S = 120.0
_MOST = 200
_NUMBER = re.compile(r"\d[\d,.]*")


class Trouble(NamedTuple):
    """A problem as `trawl status` says it."""

    what: str
    fix: str


class Alarm(msgspec.Struct, frozen=True, kw_only=True):
    """A problem that is, or was just now. Times are Redis's, in epoch seconds."""

    what: str
    fix: str
    since: float
    seen_at: float
    told: bool = False


class Step(NamedTuple):
    """What follows from a look."""

    known: dict[str, Alarm]  # as to be kept, once the message has been sent
    tell: list[Alarm]
    over: list[Alarm]


def step(known: Mapping[str, Alarm], troubles: Sequence[Trouble], now: float) -> Step:
    """Compare the problems of now with those that were known."""
    kept: dict[str, Alarm] = {}
    tell: list[Alarm] = []
    for trouble in troubles[:_MOST]:
        name = identity(trouble)
        before = known.get(name)
        told = before is not None and before.told
        since = before.since if before else now
        alarm = Alarm(what=trouble.what, fix=trouble.fix, since=since, seen_at=now, told=told or now - since >= LASTS_S)
        if alarm.told and not told and name not in kept:
            tell.append(alarm)
        kept.setdefault(name, alarm)
    over = []
    for name, alarm in known.items():
        if name in kept:
            continue
        if now - alarm.seen_at < OVER_S and alarm.told:
            kept[name] = alarm
        elif alarm.told:
            over.append(alarm)
    return Step(known=kept, tell=tell, over=over)


def identity(trouble: Trouble) -> str:
    """What makes two sentences one problem: neither their numbers nor their details."""
    what = re.split(r": | \(", trouble.what, maxsplit=1)[0]
    return _NUMBER.sub("#", f"{what}|{trouble.fix}")


def message(found: Step) -> tuple[str, str]:
    """Title and text of the message about a step that has something to say."""
    parts = []
    if found.tell:
        parts.append(f"{len(found.tell):,} {'problem' if len(found.tell) == 1 else 'problems'}")
    if found.over:
        parts.append(f"{len(found.over):,} resolved")
    left = sum(alarm.told for alarm in found.known.values())
    lines = [f"{alarm.what}\n  next: {alarm.fix}" if alarm.fix else alarm.what for alarm in found.tell]
    lines += [f"resolved: {alarm.what}" for alarm in found.over]
    lines.append("All is well." if left == 0 else f"{left:,} in all need attention: trawl status")
    return f"Trawl: {', '.join(parts)}", "\n".join(lines)


class Alarms:
    """What each output was told of. Raises `redis.RedisError`."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def now(self) -> float:
        """Redis's clock, epoch s."""
        seconds, micros = self._client.time()
        return float(seconds) + float(micros) / 1e6

    def known(self, output: str) -> dict[str, Alarm]:
        """By identity; what cannot be read counts as unknown."""
        raw: Any = self._client.get(ForumFleetKeys().alarms(output))
        try:
            return msgspec.json.decode(raw or b"{}", type=dict[str, Alarm])
        except msgspec.DecodeError:
            return {}

    def keep(self, output: str, known: Mapping[str, Alarm]) -> None:
        """Replace what is known."""
        self._client.set(ForumFleetKeys().alarms(output), msgspec.json.encode(dict(known)))
