"""Messages to people through Apprise (the extra `notify`): mail, Slack, Telegram, DingTalk, Feishu, WeCom and many others."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from forums.events.rules import NotifyOptions
from forums.storage.event_reader import Event
from redis_components.errors import ConfigError
from redis_components.server.printable import in_one_line, printable

from .delivery import NotTaken, Taken

_IN_ONE_MESSAGE = 20  # events
_EXCERPT = 200  # characters of a text


def send(name: str, options: NotifyOptions, title: str, body: str) -> None:
    """Send one message. Raises NotTaken where the service does not take it, ConfigError where it never can."""
    try:
        import apprise
    except ImportError:
        raise ConfigError(f"output {name} needs Apprise: pip install 'trawl-fleet[notify]'") from None
    logging.getLogger("apprise").setLevel(logging.CRITICAL)  # it writes addresses with tokens into the log
    service = apprise.Apprise()
    if not service.add(options.url):
        raise ConfigError(f"output {name}: its url is not one that Apprise knows: see https://appriseit.com/services")
    try:
        taken = service.notify(title=in_one_line(title), body=printable(body), body_format=apprise.NotifyFormat.TEXT)
    except Exception as error:
        raise NotTaken(f"{type(error).__name__} in Apprise") from None  # its text may have the token
    if not taken:
        raise NotTaken(f"{service[0].service_name} did not take the message")


class NotifyOutput:
    """One recipient: a message for up to 20 events."""

    def __init__(self, name: str, options: NotifyOptions) -> None:
        self._name = name
        self._options = options

    def deliver(self, events: Sequence[Event], *, single: bool = False) -> Taken:
        """Send a message about the first of them."""
        chosen = events[: 1 if single else _IN_ONE_MESSAGE]
        rules = ", ".join(sorted({rule for event in chosen for rule in (*event.rules, *event.undecided)}))
        what = "post" if all(event.row in ("post", "comment") for event in chosen) else "event"
        title = f"Trawl: {len(chosen):,} {what if len(chosen) == 1 else f'{what}s'} for {rules}"
        send(self._name, self._options, title, "\n\n".join(map(_lines, chosen)))
        return Taken(number=len(chosen))


def _lines(event: Event) -> str:
    text = " ".join((event.text or "").split())
    short = text if len(text) <= _EXCERPT else f"{text[: _EXCERPT - 1]}…"
    if event.row not in ("post", "comment"):
        return in_one_line(f"{event.type} {event.row}{f' at {event.site}' if event.site else ''}: {short}")
    head = f"{event.type} {event.row} at {event.site} by {event.author or 'unknown'}: {event.title or ''}"
    return "\n".join(in_one_line(part) for part in (head, short, event.url) if part)
