"""Outputs of events, their common parts, files, Redis streams and webhooks; `messages.py` has the others.

A file grows by one line of JSON for each event. The last line gives the position, so each event is written once. To rotate the
file, rename it: the next events begin a new one.

A Redis stream is for consumer groups (XREADGROUP). An entry's id is the event's position, so Redis refuses a duplicate. If the
stream is full, entries that every group has acknowledged are trimmed; while a group has not acknowledged them, nothing is added,
and the rest waits in the database. Without groups the oldest entries are trimmed.

A webhook is a POST, signed by the specification of https://www.standardwebhooks.com, whose libraries verify the signature.

    webhook-id: <output>:<position of the first event>
    webhook-timestamp: <epoch seconds>
    webhook-signature: v1,<base64 of HMAC-SHA256 of "id.timestamp.body">
    {"output": "shop", "events": [{"id": "demo/post/12@1", ...}]}

An answer 2xx accepts the batch. Other answers are handled in `_judge`. Redirects are not followed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar, Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec
import redis
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from forums.state.keys import ForumFleetKeys
from forums.storage.read.event_reader import Event
from forums.storage.write.changes import PAST_WORDS, Position
from redis_components.errors import ConfigError, TrawlError
from redis_components.politeness.limits import retry_after_s
from redis_components.server.variables import project_dir
from workers.http.public_addresses import Allowance, private_addresses_allowed


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


class Delivery(NamedTuple):
    """Circumstances of a delivery: the output's name, and the position after all events."""

    name: str
    client: redis.Redis
    end: Position


def _with_zone(moment: datetime) -> datetime:
    """Return a time of UTC where no zone is written."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _of_this_trawl(kinds: Any) -> Any:
    """Leave out subjects that only older Trawls had."""
    return [one for one in kinds if one not in PAST_WORDS] if isinstance(kinds, list | tuple) else kinds


class Table(BaseModel):
    """A table of `trawl.toml`."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)


class OutputOptions(Table):
    """Keys of every output. Each subclass is a kind of output, and nothing else lists the kinds: the check of `trawl.toml`, the
    publisher, `trawl alert` and the reference find them by `kinds()`.
    """

    targets: ClassVar[Mapping[str, str]] = {}
    """Beginnings of addresses that `trawl alert --to` takes for this kind, each with an example."""
    takes_everything: ClassVar[bool] = True
    """Without rules it gets every event; False: none."""

    kind: str = Field(description="the kind of output")
    rules: tuple[str, ...] = Field((), description="names of rules of which one has to match; left out: every event")
    kinds: Annotated[tuple[Literal["post", "comment", "crawler", "breaker", "fleet"], ...], BeforeValidator(_of_this_trawl)] = (
        Field(("post", "comment"), description="what the events are about")
    )
    begin: Literal["now", "oldest"] = Field(
        "now", description='a new output begins now, or with the `"oldest"` event that is kept'
    )
    written_since: Annotated[datetime, AfterValidator(_with_zone)] | None = Field(
        None, description="leave out what was written before, as 2026-01-31, which a first reading of a board stores as new"
    )

    def secrets(self) -> Mapping[str, int]:
        """Return the keys whose values are in the environment, with their least lengths."""
        return {}

    def deliver(self, to: Delivery, events: Sequence[Event]) -> Taken:
        """Deliver events, the oldest first. After a crash the same ones may come again, with the same ids. Raises NotTaken."""
        raise NotImplementedError

    @classmethod
    def of_address(cls, address: str, secret: str) -> dict[str, Any]:
        """Return the keys for an address of `targets`; `secret` is a random one. Raises ConfigError."""
        raise NotImplementedError


class FileOptions(OutputOptions):
    """A file with one JSON object in each line."""

    kind: Literal["file"]
    path: str = Field(min_length=1, description="the file; relative paths begin at the project")

    def deliver(self, to: Delivery, events: Sequence[Event]) -> Taken:
        """Append the new events, and sync them to the disk."""
        path = project_dir() / Path(self.path).expanduser()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "r+b") as file:
                last = _last_in(file, path, to.end)
                new = [event for event in events if last is None or event.at > last]
                file.write(b"".join(msgspec.json.encode(event) + b"\n" for event in new))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise NotTaken(f"{path}: {error.strerror or error}: name a file in a writable folder") from error
        return Taken(number=len(events))


_LAST = 4 << 20  # bytes from the end that are searched for the last whole line


def _last_in(file: BinaryIO, path: Path, end: Position) -> Position | None:
    """Return the position of the last whole line, and truncate the file after it: a part of a line is of a process that
    died.
    """
    size = file.seek(0, os.SEEK_END)
    start = max(0, size - _LAST)
    file.seek(start)
    tail = file.read()
    whole = tail.rfind(b"\n") + 1
    if whole == 0 and start > 0:
        raise _foreign(path, "its last line has over 4 MiB")
    file.seek(start + whole)
    file.truncate()
    if whole == 0:
        return None
    line = tail[tail.rfind(b"\n", 0, whole - 1) + 1 : whole]
    try:
        last = msgspec.json.decode(line, type=Event).at
    except (msgspec.DecodeError, ConfigError):
        raise _foreign(path, "its last line is not an event") from None
    if last >= end:
        raise _foreign(path, f"it ends with event {last}, which this database does not have")
    return last


def _foreign(path: Path, what: str) -> NotTaken:
    return NotTaken(f"{path}: {what}: name another file, or move this one away")


class StreamOptions(OutputOptions):
    """A Redis stream, for consumer groups."""

    kind: Literal["stream"]
    max_length: int = Field(10_000, ge=100, le=10_000_000, description="entries; a full stream waits for its slowest group")

    def deliver(self, to: Delivery, events: Sequence[Event]) -> Taken:
        """Add the new events, as far as there is room."""
        client, key = to.client, ForumFleetKeys().event_stream(to.name)
        try:
            last = _last_of(client, key, to.end)
            old = sum(1 for event in events if last is not None and event.at <= last)
            new = events[old : old + self._room(client, key, len(events) - old)]
            if new:
                pipeline = client.pipeline(transaction=True)
                for event in new:
                    pipeline.xadd(key, {"id": event.id, "event": msgspec.json.encode(event)}, id=event.position)
                pipeline.execute()
        except redis.RedisError as error:
            raise NotTaken(f"{key}: {error}") from error
        return Taken(number=old + len(new))

    def _room(self, client: redis.Redis, key: str, wanted: int) -> int:
        """Return how many events may be added, `wanted` at most and at least one. Raises NotTaken if a group keeps the stream
        full.
        """
        room = self.max_length - int(client.xlen(key))
        if room >= wanted:
            return wanted
        groups: Any = client.xinfo_groups(key)
        if not groups:
            client.xtrim(key, maxlen=max(0, self.max_length - wanted), approximate=False)
            return min(wanted, self.max_length)
        needed = {group["name"].decode(): _needed(client, key, group) for group in groups}
        slowest = min(needed, key=lambda name: needed[name])
        client.xtrim(key, minid=str(needed[slowest]), approximate=False)
        room = self.max_length - int(client.xlen(key))
        if room <= 0:
            raise NotTaken(
                f"{key} is full: the group {slowest} has not acknowledged its {self.max_length:,} entries; the rest waits"
                f" in the database. If the group is not used any more: XGROUP DESTROY {key} {slowest}"
            )
        return min(room, wanted)


def _last_of(client: redis.Redis, key: str, end: Position) -> Position | None:
    if not client.exists(key):
        return None
    info: Any = client.xinfo_stream(key)
    last = _position(info["last-generated-id"])
    if last >= end:
        raise NotTaken(f"{key} ends with event {last}, which this database does not have: delete that key, or rename the output")
    return last


def _needed(client: redis.Redis, key: str, group: Any) -> Position:
    """Return the oldest entry that a group has not acknowledged."""
    if group["pending"]:
        summary: Any = client.xpending(key, group["name"])
        if summary["min"]:
            return _position(summary["min"])
    last = _position(group["last-delivered-id"])
    return Position(last.seq, last.place + 1)


def _position(stream_id: bytes | str) -> Position:
    return Position.parse(stream_id.decode() if isinstance(stream_id, bytes) else stream_id)


_REFUSALS = frozenset(
    {400, 406, 409, 410, 411, 413, 414, 415, 422, 431, 451}
)  # refusals of the batch; other 4xx are errors of the configuration
_LONGEST_WAIT_S = 3600.0
_PATIENCE_S = 10.0  # of the search for the refused event


class WebhookOptions(OutputOptions):
    """A URL that events are posted to."""

    targets: ClassVar = {"https://": "https://example.org/hook", "http://": "https://example.org/hook"}

    kind: Literal["webhook"]
    url: Annotated[str, StringConstraints(pattern=r"^https?://[^\s/@]+(/\S*)?$")] = Field(description="address")
    secret: str = Field(description="`${NAME}` of the environment, 16 characters or more; it signs each request")
    batch: int = Field(100, ge=1, le=1000, description="events in one request, at most")
    timeout_s: float = Field(10.0, gt=0, le=15, description="time for an answer")  # so that a round ends before its task's limit
    allow_private: bool = Field(False, description="its name may resolve to an address that is not public")

    def secrets(self) -> Mapping[str, int]:
        """Return the key of the secret."""
        return {"secret": 16}

    @classmethod
    def of_address(cls, address: str, secret: str) -> dict[str, Any]:
        """Return the keys for a URL."""
        return {"kind": "webhook", "url": address, "secret": secret}

    def deliver(self, to: Delivery, events: Sequence[Event]) -> Taken:
        """Post a batch; if it is refused, half of it, until the refused event stands alone. With a slow receiver the first
        event is posted alone at once: the round has to end before its task's time limit, or its result would be lost.
        """
        begun = time.monotonic()
        size = min(len(events), self.batch)
        while True:
            reason = self._post(to.name, events[:size])
            if reason is None:
                return Taken(number=size)
            if size == 1:
                return Taken(number=1, refused=[(events[0], reason)])
            size = (size + 1) // 2 if time.monotonic() - begun < _PATIENCE_S else 1

    def _post(self, name: str, events: Sequence[Event]) -> str | None:
        """Return None if the events are accepted, else why they are refused for good. Raises NotTaken."""
        from workers.http.client import NoAnswer, PrivateAddress, post  # 0.2 s, which reading `trawl.toml` does not need

        body = msgspec.json.encode({"output": name, "events": events})
        headers = signed(body, f"{name}:{events[0].position}", int(time.time()), self.secret)
        try:
            answer = post(self.url, body, headers, self._allowance(), self.timeout_s)
        except (PrivateAddress, NoAnswer) as error:
            raise NotTaken(str(error)) from None
        asked_s = retry_after_s(answer.headers.get("Retry-After"), answer.headers.get("Date"))
        return _judge(answer.status, asked_s, answer.text)

    def _allowance(self) -> Allowance:
        """Return the allowance of private addresses: if the file allows them, or names one as the URL."""
        host = urlsplit(self.url).hostname or ""
        everything = self.allow_private or private_addresses_allowed()
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
