"""Messages to people through Apprise (the extra `notify`): mail, Slack, Telegram, DingTalk, Feishu, WeCom and many others; and
alarms about problems of the fleet.

A problem is sent once it has lasted a minute, and sent as resolved when it has not been seen for two, so that problems that pass
at once cause no message.
"""

from __future__ import annotations

import logging
import re
import socket
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple
from urllib.parse import urlencode

import msgspec
import redis
from pydantic import Field, model_validator

from forums.state.keys import ForumFleetKeys
from forums.storage.read.event_reader import Event
from redis_components.admin.health import Problem
from redis_components.errors import ConfigError
from redis_components.politeness.limits import parse_quiet_hours, quiet_now
from redis_components.server.printable import in_one_line, kind_of, printable
from redis_components.server.untrusted_values import server_time

from .outputs import Delivery, NotTaken, OutputOptions, Taken

if TYPE_CHECKING:
    from .rules import Rules

_IN_ONE_MESSAGE = 20  # events, with the beginnings of their texts
_IN_ONE_DIGEST = 200  # events, without texts
_EXCERPT = 200  # characters of a text
_BETWEEN = "\n\n"
_MAIL = re.compile(r"mailto:(?P<to>[^\s/@?]{1,64}@[^\s/@?]{1,255})(?:\?smtp=(?P<smtp>[\w.\[\]:-]{1,255}))?")


class NotifyOptions(OutputOptions):
    """A recipient of messages, by its Apprise URL: of events that match its rules, and of alarms."""

    targets: ClassVar = {
        **dict.fromkeys(("mailto:", "mailtos:"), "mailto:you@example.org"),
        **dict.fromkeys(("ntfy://", "ntfys://"), "ntfy://TOPIC"),
    }
    takes_everything = False

    kind: Literal["notify"]
    url: str = Field(description="`${NAME}` of the environment: an address of Apprise, as `mailto://…`, `slack://…`")
    alarms: bool = Field(False, description="also the problems of `trawl status`")
    digest_minutes: int = Field(0, ge=0, le=1440, description="time that an event waits for others, to be in one message")
    quiet_hours: str = Field("", description='nothing is sent then, as `"22:00-07:00"`; it is sent afterwards')
    time_zone: str = Field("UTC", description="of the quiet hours, as `Europe/Berlin`")

    @model_validator(mode="after")
    def _can_be_read(self) -> NotifyOptions:
        try:
            parse_quiet_hours(self.quiet_hours or "00:00-01:00", self.time_zone)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return self

    def quiet_for_s(self, now: float) -> float | None:
        """Return the remaining seconds of its quiet hours at `now` (epoch s); None outside of them."""
        return quiet_now(parse_quiet_hours(self.quiet_hours, self.time_zone), now) if self.quiet_hours else None

    def secrets(self) -> Mapping[str, int]:
        """Return the key of the URL, which has a password or token."""
        return {"url": 1}

    @classmethod
    def of_address(cls, address: str, secret: str) -> dict[str, Any]:  # noqa: ARG003 - the form of all kinds
        """Return the keys for an address of Apprise, or for `mailto:you@example.org`, which the mail server of this machine
        takes, or the server of `?smtp=HOST:PORT`.
        """
        if found := _MAIL.fullmatch(address):
            host, sender = found["smtp"] or "localhost", f"trawl@{socket.getfqdn()}"
            address = f"mailto://{host}/?{urlencode({'to': found['to'], 'from': sender})}"
        return {"kind": "notify", "url": address}

    def deliver(self, to: Delivery, events: Sequence[Event]) -> Taken:
        """Send a message about the first events."""
        digest = self.digest_minutes > 0
        chosen = events[: _IN_ONE_DIGEST if digest else _IN_ONE_MESSAGE]
        service = service_of(to.name, self)
        room = service[0].body_maxlen - len(_title(chosen))  # some services put the title into the body
        parts: list[str] = []
        for event in chosen:
            part = _lines(event, excerpt=not digest)
            room -= len(part) + len(_BETWEEN)
            if room < 0 and parts:
                break
            parts.append(part)
        chosen = chosen[: len(parts)]
        _send(service, _title(chosen), _BETWEEN.join(parts))
        return Taken(number=len(chosen))


def _send(service: Any, title: str, body: str) -> None:
    """Send one message by a prepared service."""
    try:
        taken = service.notify(title=in_one_line(title), body=printable(body), body_format="text")
    except Exception as error:
        raise NotTaken(f"Apprise: {kind_of(error)}") from None  # its text may have the token
    if not taken:
        raise NotTaken(f"{service[0].service_name} did not take the message")


def service_of(name: str, options: NotifyOptions) -> Any:
    """Return Apprise with the output's address. Raises ConfigError."""
    try:
        import apprise
    except ImportError:
        raise ConfigError(f"output {name} needs Apprise: pip install 'trawl-fleet[notify]'") from None
    logging.getLogger("apprise").setLevel(logging.CRITICAL)  # it writes addresses with tokens into the log
    service = apprise.Apprise()
    if not service.add(options.url):
        raise ConfigError(f"output {name}: its url is not one that Apprise knows: see https://appriseit.com/services")
    return service


class StdoutOptions(OutputOptions):
    """The standard output of the worker that publishes, as `trawl up` and `docker logs` show it."""

    targets: ClassVar = {"stdout": "stdout"}

    kind: Literal["stdout"]

    @classmethod
    def of_address(cls, address: str, secret: str) -> dict[str, Any]:  # noqa: ARG003 - the form of all kinds
        """Return the keys for `stdout`."""
        if address != "stdout":
            raise ConfigError(f"{address!r:.100} is not an address: write stdout")
        return {"kind": "stdout"}

    def deliver(self, to: Delivery, events: Sequence[Event]) -> Taken:  # noqa: ARG002 - the form of all kinds
        """Print the events; to the standard output itself, which Celery replaces by its log."""
        for event in events:
            line = " | ".join((", ".join((*event.rules, *event.undecided)), *_lines(event, excerpt=True).split("\n")))
            print(line, file=sys.__stdout__, flush=True)
        return Taken(number=len(events))


def _title(events: Sequence[Event]) -> str:
    rules = ", ".join(sorted({rule for event in events for rule in (*event.rules, *event.undecided)}))
    what = "post" if all(event.row in ("post", "comment") for event in events) else "event"
    return f"Trawl: {len(events):,} {what if len(events) == 1 else f'{what}s'} for {rules}"


def _lines(event: Event, *, excerpt: bool) -> str:
    text = " ".join((event.text or "").split())
    short = text if len(text) <= _EXCERPT else f"{text[: _EXCERPT - 1]}…"
    if event.row not in ("post", "comment"):
        return in_one_line(f"{event.type} {event.row}{f' at {event.site}' if event.site else ''}: {short}")
    head = f"{event.type} {event.row} at {event.site} by {event.author or 'unknown'}: {event.title or ''}"
    return "\n".join(in_one_line(part) for part in (head, short if excerpt else "", event.url) if part)


LASTS_S = 60.0
OVER_S = 120.0
_MOST = 200
_NUMBER = re.compile(r"\d[\d,.]*(?: (?:s|min|h|d)\b)?")


class Alarm(msgspec.Struct, frozen=True, kw_only=True):
    """A problem that exists, or existed until just now. Times are Redis's, in epoch seconds."""

    what: str
    fix: str
    since: float
    seen_at: float
    reported: bool = msgspec.field(name="told", default=False)  # its stored name


class Step(NamedTuple):
    """Result of a comparison."""

    known: dict[str, Alarm]  # to be stored once the message has been sent
    started: list[Alarm]
    over: list[Alarm]


def step(known: Mapping[str, Alarm], troubles: Sequence[Problem], now: float) -> Step:
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


def identity(trouble: Problem) -> str:
    """Return the identity of a problem: its sentence without numbers and details."""
    what = re.split(r": | \(", trouble.what, maxsplit=1)[0]
    return _NUMBER.sub("#", f"{what}|{trouble.fix}")


def alarm_message(found: Step) -> tuple[str, str]:
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


def known_alarms(client: redis.Redis, output: str) -> dict[str, Alarm]:
    """Return the known alarms of an output by identity; unreadable ones count as unknown. Raises `redis.RedisError`."""
    raw: Any = client.get(ForumFleetKeys().alarms(output))
    try:
        return msgspec.json.decode(raw or b"{}", type=dict[str, Alarm])
    except msgspec.DecodeError:
        return {}


logger = logging.getLogger(__name__)


def send_alarms(client: redis.Redis, rules: Rules, troubles: Sequence[Problem]) -> dict[str, str]:
    """Send started and resolved alarms, one message to each output; return the outcome of each: `sent`, `quiet`, `quiet
    hours`, or an error.

    A failed message is tried again with the next call. Alarms in the quiet hours of an output are sent after them, if they
    still exist. Raises `redis.RedisError`.
    """
    outcomes = {}
    for name, options in rules.outputs.items():
        if not isinstance(options, NotifyOptions) or not options.alarms:
            continue
        known, now = known_alarms(client, name), server_time(client)
        if options.quiet_for_s(now) is not None:
            outcomes[name] = "quiet hours"
            continue
        found: Step = step(known, troubles, now)
        outcomes[name] = "quiet"
        if found.started or found.over:
            try:
                _send(service_of(name, options), *alarm_message(found))
                outcomes[name] = "sent"
            except NotTaken as error:
                logger.warning("output %s did not get %d alarms: %s", name, len(found.started) + len(found.over), error)
                outcomes[name] = str(error)
                continue
        if found.known != known:
            client.set(ForumFleetKeys().alarms(name), msgspec.json.encode(found.known))
    return outcomes
