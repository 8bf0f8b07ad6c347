"""Conversion of scrapy-redis's `Request.to_dict` to our payload. No spider is loaded: callbacks stay names, and the names (a
method, a request class) are looked up when the request is crawled.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha1
from typing import Any

import redis
from scrapy import Request, Spider

from redis_components.codec import values
from redis_components.codec.requests import RequestCodec
from redis_components.errors import CodecError, ConfigError, LayoutError, Undecodable
from redis_components.frontier.messages import QueueOrder
from redis_components.server.scripts import script

from .members import (
    BothKeys,
    PickleReader,
    Progress,
    Unread,
    is_pickle,
    kind_of,
    oldest,
    set_aside,
    size_of,
    strangers,
)

_ARGUMENTS = frozenset(Request.attributes) - {"callback", "errback"}
_encode = RequestCodec(Spider("of any name")).encode


def payload_of(fields: Any) -> bytes:
    """Return the payload of the request that `fields` describe. Raises CodecError, naming the field at fault."""
    if type(fields) is not dict or not all(type(name) is str for name in fields):
        raise Undecodable(f"it holds {type(fields).__name__}, not the fields of a request")
    if "_encoding" in fields:  # Scrapy before 2.6
        fields["encoding"] = fields.pop("_encoding")
    callbacks = {letter: _name(fields, role) for letter, role in (("c", "callback"), ("e", "errback"))}
    kind = fields.pop("_class", None)
    extra = {name: fields.pop(name) for name in fields.keys() - _ARGUMENTS}
    if extra and not kind:
        raise Undecodable(f"unknown field {min(extra)!r} of a request")
    if kind is not None and type(kind) is not str:
        raise Undecodable("_class: not the path of a class")
    try:
        request = Request(**fields)
    except Exception as exc:  # foreign values can make a constructor raise anything
        raise Undecodable(f"it does not make a request: {exc}") from exc
    stored = {letter: values.exact(value, letter) for letter, value in values.loads(_encode(request)).items()}
    stored |= {letter: name for letter, name in callbacks.items() if name is not None}
    if kind is not None:
        stored["_"] = kind
        if extra:
            stored["x"] = {name: values.exact(value, name) for name, value in extra.items()}
    return values.dumps(stored)


def _name(fields: dict[str, Any], role: str) -> str | None:
    name = fields.pop(role, None)
    if name is not None and (type(name) is not str or not name.isidentifier()):
        raise Undecodable(f"{role}: not the name of a method")
    return name


BATCH = 500
"""Requests in one call: about ten milliseconds of Redis."""
SAMPLE = 50
DEAD_REASON = "scrapy-redis's request could not be imported: "


class Members(StrEnum):
    """The form of scrapy-redis's requests, as far as a sample shows."""

    NONE = "none"
    PICKLES = "pickles"
    OTHER = "other"  # of a serializer that the project chose


@dataclass(frozen=True, kw_only=True)
class QueueFound:
    """The content of the queue's keys before the import."""

    kind: str  # of what scrapy-redis left: zset, list, or none
    foreign: int  # requests of scrapy-redis in its key
    aside: int  # requests of scrapy-redis that an earlier run has set aside
    members: Members

    @property
    def total(self) -> int:
        """Requests to import."""
        return self.foreign + self.aside


NOTHING = QueueFound(kind="none", foreign=0, aside=0, members=Members.NONE)


@dataclass(kw_only=True)
class QueueReport:
    """The outcome of importing requests."""

    found: int = 0
    imported: int = 0
    dead: Counter[str] = field(default_factory=Counter)  # by reason
    classes: Counter[str] = field(default_factory=Counter)  # request classes in addition to Scrapy's


@dataclass(frozen=True, kw_only=True)
class Fate:
    """The outcome of one request."""

    word: str  # payload, kept or dead, as `import_requests.lua` knows them
    content: bytes = b""  # the payload, or the reason
    request_class: str = ""


def inspect_queue(client: redis.Redis, keys: BothKeys) -> QueueFound:
    """Return the requests in the queue. Raises ConfigError for a key that scrapy-redis cannot have written."""
    key, aside_key = keys.theirs.requests, keys.theirs.foreign_requests()
    kind, held = kind_of(client, key), kind_of(client, aside_key)
    for name, found in ((key, kind), (aside_key, held)):
        if found not in ("none", "zset", "list"):
            raise ConfigError(
                f"{name} is a {found}, and scrapy-redis keeps requests in a zset or list: set SCHEDULER_QUEUE_KEY to their key"
            )
    here, foreign = oldest(client, key, kind, SAMPLE), size_of(client, key, kind)
    if kind == "zset":
        here, foreign = [], 0
        for batch in strangers(client, key):
            here, foreign = here or batch[:SAMPLE], foreign + len(batch)
    if foreign and held not in ("none", kind):
        raise ConfigError(
            f"{aside_key}, set aside by an earlier run, is a {held}, and {key} a {kind}: rename {key} until the first is imported"
        )
    sample = [*here, *oldest(client, aside_key, held, SAMPLE)]
    return QueueFound(
        kind=kind if foreign else held,
        foreign=foreign,
        aside=size_of(client, aside_key, held),
        members=Members.NONE if not sample else Members.PICKLES if any(map(is_pickle, sample)) else Members.OTHER,
    )


def order_of(found: QueueFound, wanted: QueueOrder | None) -> QueueOrder:
    """Return the order of the imported queue. Raises ConfigError for a list whose order the project does not name."""
    if found.kind != "list":
        return QueueOrder.PRIORITY
    if wanted not in (QueueOrder.FIFO, QueueOrder.LIFO):
        raise ConfigError("the queue is a list, of FifoQueue or of LifoQueue: choose with --order fifo or --order lifo")
    return wanted


def put_aside(client: redis.Redis, keys: BothKeys, found: QueueFound) -> None:
    """Move what is in the way of our requests to a separate name. Raises TrawlError while a Trawl crawler works."""
    key, aside, owners = keys.theirs.requests, keys.theirs.foreign_requests(), keys.ours.owners()
    if found.kind == "list":
        while set_aside(client, key, aside, owners=owners):
            continue
    for members in strangers(client, key) if found.kind == "zset" else ():
        set_aside(client, key, aside, owners=owners, members=members)


def import_requests(
    client: redis.Redis,
    keys: BothKeys,
    found: QueueFound,
    order: QueueOrder,
    *,
    as_is: bool,
    progress: Progress = lambda done, total: None,
) -> QueueReport:
    """Move what was set aside into the queue, oldest first; what cannot be read among the dead, as it was. Raises LayoutError."""
    report, reader = QueueReport(found=found.total), PickleReader()
    aside = keys.theirs.foreign_requests()
    kind = kind_of(client, aside)
    while members := oldest(client, aside, kind, BATCH):
        fates = _fates(reader, members, as_is=as_is)
        operands: list[str | bytes] = []
        for member, fate in zip(members, fates, strict=True):
            operands += (sha1(member, usedforsecurity=False).hexdigest(), fate.word, fate.content)
        outcome, moved = script("import_requests")(
            client,
            {"aside": aside, "ready": keys.ours.ready(), "counters": keys.ours.counters(), "dead": keys.ours.dead()},
            {"order": order.value, "first": operands},
        )
        if outcome == b"layout":
            raise LayoutError(f"{keys.ours.counters()}: another layout version: import with the Trawl that crawls there")
        _count(report, fates[:moved])
        progress(report.imported + report.dead.total(), report.found)
    return report


def _fates(reader: PickleReader, members: list[bytes], *, as_is: bool) -> list[Fate]:
    if as_is:
        return [Fate(word="kept") for _ in members]
    return [_fate(value) for value in reader.read(members)]


def _fate(value: object) -> Fate:
    if isinstance(value, Unread):
        return Fate(word="dead", content=_reason(value.reason))
    kind = value.get("_class", "") if isinstance(value, dict) else ""
    try:
        return Fate(word="payload", content=payload_of(value), request_class=kind)
    except CodecError as exc:
        return Fate(word="dead", content=_reason(str(exc)))


def _reason(text: str) -> bytes:
    return f"{DEAD_REASON}{text}".encode("utf-8", "backslashreplace")


def _count(report: QueueReport, fates: list[Fate]) -> None:
    for fate in fates:
        if fate.word == "dead":
            report.dead[fate.content.decode().removeprefix(DEAD_REASON)] += 1
            continue
        report.imported += 1
        if fate.request_class and not fate.request_class.startswith("scrapy.http."):
            report.classes[fate.request_class] += 1
