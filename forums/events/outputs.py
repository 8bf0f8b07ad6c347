"""Outputs of events, their common parts, files and webhooks; `queues.py` and `messages.py` have the others.

A file grows by one line of JSON for each event. The last line gives the position, so each event is written once. To rotate the
file, rename it: the next events begin a new one.

A webhook is a POST, signed by the specification of https://www.standardwebhooks.com, whose libraries verify the signature.

    webhook-id: <output>:<position of the first event>
    webhook-timestamp: <epoch seconds>
    webhook-signature: v1,<base64 of HMAC-SHA256 of "id.timestamp.body">
    {"output": "shop", "events": [{"id": "demo/post/12@1", ...}]}

An answer 2xx accepts the batch. Other answers are handled in `_judge`. Redirects are not followed.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import os
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar
from urllib.parse import urlsplit

import aiohttp
import msgspec
from scrapy.exceptions import CannotResolveHostError

from forums.storage.read.event_reader import Event
from forums.storage.write.event_log import Position
from redis_components.errors import ConfigError, TrawlError
from redis_components.politeness.limits import retry_after_s
from redis_components.server.printable import in_words
from workers.http.connector import GuardedConnector, allowing
from workers.http.public_addresses import Allowance, private_addresses_allowed

from .rules import WebhookOptions

Result = TypeVar("Result")


class NotTaken(TrawlError):
    """The output accepts nothing now: it is away, full or wrongly configured. It is tried again, and nothing is lost."""

    def __init__(self, reason: str, *, retry_after_s: float | None = None, poison: bool = False) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s  # requested by the receiver
        self.poison = poison  # the receiver answers, and fails at this batch: its first event may be the cause


@dataclass(frozen=True, kw_only=True)
class Taken:
    """Result for a batch: its first `number` events are done, some of them possibly refused."""

    number: int
    refused: Sequence[tuple[Event, str]] = ()  # for good, each with the receiver's answer


class Output(Protocol):
    """Takes events, oldest first. After a crash the same events may come again, with the same ids."""

    def deliver(self, events: Sequence[Event], *, single: bool = False) -> Taken:
        """Hand over a batch (`single`: its first event alone). Raises NotTaken."""
        ...


def acknowledged(sending: Coroutine[Any, Any, Result], within_s: float) -> Result:
    """Return the coroutine's result, once all is acknowledged. Raises NotTaken after `within_s` seconds."""
    try:
        return asyncio.run(asyncio.wait_for(sending, within_s))
    except TimeoutError:
        raise NotTaken(f"no acknowledgement within {within_s:g} s") from None


def require(module: str, output: str, package: str, extra: str) -> None:
    """Raise ConfigError if the client of an output is not installed."""
    try:
        import_module(module)
    except ImportError:
        raise ConfigError(f"output {output} needs {package}: pip install 'trawl-fleet[{extra}]'") from None


def encode(event: Event) -> bytes:
    """Encode an event as one line of JSON in UTF-8."""
    return msgspec.json.encode(event)


_LAST = 4 << 20  # bytes from the end that are searched for the last whole line


class FileOutput:
    """One file; `end` is the position after all existing events."""

    def __init__(self, path: Path, end: Position) -> None:
        self._path = path
        self._end = end

    def deliver(self, events: Sequence[Event], *, single: bool = False) -> Taken:
        """Append the new events, and sync them to the disk."""
        given = events[:1] if single else events
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "r+b") as file:
                last = self._last(file)
                new = [event for event in given if last is None or event.at > last]
                file.write(b"".join(encode(event) + b"\n" for event in new))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise NotTaken(f"{self._path}: {error.strerror or error}: name a file in a writable folder") from error
        return Taken(number=len(given))

    def _last(self, file: BinaryIO) -> Position | None:
        """Return the position of the last whole line, and truncate the file after it: a part of a line is of a process that
        died.
        """
        size = file.seek(0, os.SEEK_END)
        start = max(0, size - _LAST)
        file.seek(start)
        tail = file.read()
        whole = tail.rfind(b"\n") + 1
        if whole == 0 and start > 0:
            raise self._foreign("its last line has over 4 MiB")
        file.seek(start + whole)
        file.truncate()
        if whole == 0:
            return None
        line = tail[tail.rfind(b"\n", 0, whole - 1) + 1 : whole]
        try:
            last = msgspec.json.decode(line, type=Event).at
        except (msgspec.DecodeError, ConfigError):
            raise self._foreign("its last line is not an event") from None
        if last >= self._end:
            raise self._foreign(f"it ends with event {last}, which this database does not have")
        return last

    def _foreign(self, what: str) -> NotTaken:
        return NotTaken(f"{self._path}: {what}: name another file, or move this one away")


_REFUSALS = frozenset(
    {400, 406, 409, 410, 411, 413, 414, 415, 422, 431, 451}
)  # refusals of the batch; other 4xx are errors of the configuration
_LONGEST_WAIT_S = 3600.0
_PATIENCE_S = 10.0  # of the search for the refused event
_SHOWN = 200  # characters of an answer


class WebhookOutput:
    """One receiver."""

    def __init__(self, name: str, options: WebhookOptions) -> None:
        self._name = name
        self._options = options

    def deliver(self, events: Sequence[Event], *, single: bool = False) -> Taken:
        """Post a batch; if it is refused, half of it, until the refused event stands alone. With a slow receiver the first
        event is posted alone at once: the round has to end before its task's time limit, or its result would be lost.
        """
        begun = time.monotonic()
        size = 1 if single else min(len(events), self._options.batch)
        while True:
            reason = asyncio.run(self._post(events[:size]))
            if reason is None:
                return Taken(number=size)
            if size == 1:
                return Taken(number=1, refused=[(events[0], reason)])
            size = (size + 1) // 2 if time.monotonic() - begun < _PATIENCE_S else 1

    async def _post(self, events: Sequence[Event]) -> str | None:
        """Return None if the events are accepted, else why they are refused for good. Raises NotTaken."""
        body = msgspec.json.encode({"output": self._name, "events": events})
        headers = signed(body, f"{self._name}:{events[0].position}", int(time.time()), self._options.secret)
        timeout = aiohttp.ClientTimeout(total=self._options.timeout_s)
        try:
            async with aiohttp.ClientSession(connector=GuardedConnector(), timeout=timeout, trust_env=False) as session:
                with allowing(self._allowance()):
                    async with session.post(self._options.url, data=body, headers=headers, allow_redirects=False) as answer:
                        text = (await answer.content.read(_SHOWN)).decode("utf-8", "replace")
                        asked_s = retry_after_s(answer.headers.get("Retry-After"), answer.headers.get("Date"))
                        return _judge(answer.status, asked_s, " ".join(text.split()))
        except TimeoutError:
            raise NotTaken(f"no answer within {self._options.timeout_s:g} s") from None
        except CannotResolveHostError as error:
            raise NotTaken(str(error)) from None
        except aiohttp.ClientConnectorError as error:
            raise NotTaken(f"{error.host}:{error.port} does not answer ({in_words(error.os_error)})") from None
        except (aiohttp.ClientError, OSError) as error:
            raise NotTaken(f"the receiver broke off: {in_words(error)}") from None

    def _allowance(self) -> Allowance:
        """Return the allowance of private addresses: if the file allows them, or names one as the URL."""
        host = urlsplit(self._options.url).hostname or ""
        everything = self._options.allow_private or private_addresses_allowed()
        return Allowance(everything=everything, hosts=frozenset({host.lower()}))


def signed(body: bytes, id_: str, at: int, secret: str) -> dict[str, str]:
    """Return the headers of a request. `secret` is `whsec_` and base64, or any text. Raises ConfigError."""
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True) if secret.startswith("whsec_") else secret.encode()
    except binascii.Error:
        raise ConfigError("a webhook's secret that begins with whsec_ must go on in base64") from None
    digest = hmac.new(key, f"{id_}.{at}.".encode() + body, hashlib.sha256).digest()
    return {
        "Content-Type": "application/json",
        "User-Agent": "Trawl",
        "webhook-id": id_,
        "webhook-timestamp": str(at),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


def _judge(status: int, asked_s: float | None, text: str) -> str | None:
    answer = f"HTTP {status}{f': {text}' if text else ''}"
    if 200 <= status < 300:
        return None
    if status in _REFUSALS:
        return answer
    wait_s = None if asked_s is None else min(asked_s, _LONGEST_WAIT_S)
    raise NotTaken(answer, retry_after_s=wait_s, poison=status in (500, 501))
