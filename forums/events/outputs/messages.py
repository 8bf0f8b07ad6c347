"""Messages to people through Apprise (the extra `notify`): mail, Slack, Telegram, DingTalk, Feishu, WeCom and many others."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from forums.events.rules import NotifyOptions
from forums.storage.read.event_reader import Event
from redis_components.errors import ConfigError
from redis_components.server.printable import in_one_line, printable

from .delivery import NotTaken, Taken, require

_IN_ONE_MESSAGE = 20  # events, with the beginnings of their texts
_IN_ONE_DIGEST = 200  # events, without texts
_EXCERPT = 200  # characters of a text
_BETWEEN = "\n\n"


def send(name: str, options: NotifyOptions, title: str, body: str) -> None:
    """Send one message. Raises NotTaken if the service does not accept it, ConfigError if it never can."""
    _send(service_of(name, options), title, body)


def _send(service: Any, title: str, body: str) -> None:
    """Send one message by a prepared service."""
    try:
        taken = service.notify(title=in_one_line(title), body=printable(body), body_format="text")
    except Exception as error:
        raise NotTaken(f"{type(error).__name__} in Apprise") from None  # its text may have the token
    if not taken:
        raise NotTaken(f"{service[0].service_name} did not take the message")


def service_of(name: str, options: NotifyOptions) -> Any:
    """Return Apprise with the output's address. Raises ConfigError."""
    require("apprise", name, "Apprise", "notify")
    import apprise

    logging.getLogger("apprise").setLevel(logging.CRITICAL)  # it writes addresses with tokens into the log
    service = apprise.Apprise()
    if not service.add(options.url):
        raise ConfigError(f"output {name}: its url is not one that Apprise knows: see https://appriseit.com/services")
    return service


class NotifyOutput:
    """One recipient: a message for up to 20 events, a digest for up to 200, within the service's limit of a message."""

    def __init__(self, name: str, options: NotifyOptions) -> None:
        self._name = name
        self._options = options

    def deliver(self, events: Sequence[Event], *, single: bool = False) -> Taken:
        """Send a message about the first events."""
        digest = self._options.digest_minutes > 0
        chosen = events[: 1 if single else _IN_ONE_DIGEST if digest else _IN_ONE_MESSAGE]
        service = service_of(self._name, self._options)
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
