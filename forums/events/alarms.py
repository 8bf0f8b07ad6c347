"""Alarms about problems of the fleet: decides which to send now, and which are resolved. Pure but for `Alarms`.

A problem is sent once it has lasted a minute, and sent as resolved when it has not been seen for two, so that problems that pass
at once cause no message.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import redis

from forums.state.keys import ForumFleetKeys

from .outputs.delivery import NotTaken
from .rules import NotifyOptions, Rules

LASTS_S = 60.0
OVER_S = 120.0
_MOST = 200
_NUMBER = re.compile(r"\d[\d,.]*")


class Trouble(NamedTuple):
    """A problem as `trawl status` shows it."""

    what: str
    fix: str


class Alarm(msgspec.Struct, frozen=True, kw_only=True):
    """A problem that exists, or existed until just now. Times are Redis's, in epoch seconds."""

    what: str
    fix: str
    since: float
    seen_at: float
    reported: bool = False


class Step(NamedTuple):
    """Result of a comparison."""

    known: dict[str, Alarm]  # to be stored once the message has been sent
    started: list[Alarm]
    over: list[Alarm]


def step(known: Mapping[str, Alarm], troubles: Sequence[Trouble], now: float) -> Step:
    """Compare the present problems with the known ones."""
    kept: dict[str, Alarm] = {}
    started: list[Alarm] = []
    for trouble in troubles[:_MOST]:
        name = identity(trouble)
        before = known.get(name)
        reported = before is not None and before.reported
        since = before.since if before else now
        alarm = Alarm(what=trouble.what, fix=trouble.fix, since=since, seen_at=now, reported=reported or now - since >= LASTS_S)
        if alarm.reported and not reported and name not in kept:
            started.append(alarm)
        kept.setdefault(name, alarm)
    over = []
    for name, alarm in known.items():
        if name in kept:
            continue
        if now - alarm.seen_at < OVER_S and alarm.reported:
            kept[name] = alarm
        elif alarm.reported:
            over.append(alarm)
    return Step(known=kept, started=started, over=over)


def identity(trouble: Trouble) -> str:
    """Return the identity of a problem: its sentence without numbers and details."""
    what = re.split(r": | \(", trouble.what, maxsplit=1)[0]
    return _NUMBER.sub("#", f"{what}|{trouble.fix}")


def message(found: Step) -> tuple[str, str]:
    """Return title and text of the message about a step with started or resolved problems."""
    parts = []
    if found.started:
        parts.append(f"{len(found.started):,} {'problem' if len(found.started) == 1 else 'problems'}")
    if found.over:
        parts.append(f"{len(found.over):,} resolved")
    left = sum(alarm.reported for alarm in found.known.values())
    lines = [f"{alarm.what}\n  next: {alarm.fix}" if alarm.fix else alarm.what for alarm in found.started]
    lines += [f"resolved: {alarm.what}" for alarm in found.over]
    lines.append("All is well." if left == 0 else f"{left:,} in all need attention: trawl status")
    return f"Trawl: {', '.join(parts)}", "\n".join(lines)


class Alarms:
    """Alarms sent to each output. Raises `redis.RedisError`."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def now(self) -> float:
        """Redis's clock, epoch s."""
        seconds, micros = self._client.time()
        return float(seconds) + float(micros) / 1e6

    def known(self, output: str) -> dict[str, Alarm]:
        """Return the known alarms of an output by identity; unreadable ones count as unknown."""
        raw: Any = self._client.get(ForumFleetKeys().alarms(output))
        try:
            return msgspec.json.decode(raw or b"{}", type=dict[str, Alarm])
        except msgspec.DecodeError:
            return {}

    def keep(self, output: str, known: Mapping[str, Alarm]) -> None:
        """Replace the known alarms of an output."""
        self._client.set(ForumFleetKeys().alarms(output), msgspec.json.encode(dict(known)))


logger = logging.getLogger(__name__)


def send_alarms(client: redis.Redis, rules: Rules, troubles: Sequence[Trouble]) -> dict[str, str]:
    """Send started and resolved alarms, one message to each output; return the outcome of each: `sent`, `quiet`, `quiet
    hours`, or an error.

    A failed message is tried again with the next call. Alarms in the quiet hours of an output are sent after them, if they
    still exist. Raises `redis.RedisError`.
    """
    from .outputs.messages import send

    alarms, outcomes = Alarms(client), {}
    for name, options in rules.outputs.items():
        if not isinstance(options, NotifyOptions) or not options.alarms:
            continue
        known, now = alarms.known(name), alarms.now()
        if options.quiet_for_s(now) is not None:
            outcomes[name] = "quiet hours"
            continue
        found: Step = step(known, troubles, now)
        outcomes[name] = "quiet"
        if found.started or found.over:
            try:
                send(name, options, *message(found))
                outcomes[name] = "sent"
            except NotTaken as error:
                logger.warning("output %s did not get %d alarms: %s", name, len(found.started) + len(found.over), error)
                outcomes[name] = str(error)
                continue
        if found.known != known:
            alarms.keep(name, found.known)
    return outcomes
