"""Start tasks as text, a bare URL or JSON with the fields of `StartTask`, and from outside: seeding forums, pushing single tasks.

A wrong task is refused with the field's name. Writes are atomic, so that two beats do no harm.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import Annotated, Any, Literal, NamedTuple, cast
from urllib.parse import urlsplit

import msgspec
import redis

from redis_components.errors import BadStartTask
from redis_components.keys import CrawlKeys
from redis_components.server.scripts import script
from redis_components.server.untrusted_values import LATEST, number, readable

LONGEST_DELAY_S = 10 * 365 * 86_400


class StartTask(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A start task; `docs/start-tasks.md` describes each field. A bare URL stands for `{"url": ...}`."""

    url: str
    format: int = 1
    method: str | None = None
    headers: dict[str, str | list[str]] = {}
    cookies: dict[str, str] | list[dict[str, str | bool]] = {}
    body: str = ""
    formdata: dict[str, str | list[str]] = {}
    json: Any = None
    meta: dict[str, Any] = {}
    cb_kwargs: dict[str, Any] = {}
    priority: int = 0
    delay_s: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_DELAY_S)] = 0.0
    callback: str | None = None
    errback: str | None = None
    dont_filter: bool = True
    encoding: str = "utf-8"
    flags: list[str] = []


class _AnyFields(StartTask, forbid_unknown_fields=False, kw_only=True):
    """A start task with fields of a newer version, or of a user's own."""


FORMAT = 1
"""Version of the fields above. A later one is written into each task that has one of its fields."""
WEB = frozenset({"http", "https"})
"""The schemes of URLs that every crawl fetches."""
FIELDS = StartTask.__struct_fields__
_BODIES: dict[str, Callable[[StartTask], bool]] = {
    "body": lambda task: task.body != "",
    "formdata": lambda task: bool(task.formdata),
    "json": lambda task: task.json is not None,
}
_decode = msgspec.json.Decoder(StartTask).decode
_decode_any = msgspec.json.Decoder(_AnyFields).decode
_is_url = re.compile(r"[a-z][a-z0-9+.\-]*://|about:|data:", re.IGNORECASE).match
_is_token = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+").fullmatch  # RFC 9110
_AT = re.compile(r"(.*) - at `\$\.?(\w*+)([^`]*)`", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`")


def read(data: bytes | str, encoding: str = "utf-8", *, others_to_meta: bool = False) -> StartTask:
    """Return the start task in `data`. Raises BadStartTask with the field at fault and its expected form.

    `others_to_meta`: unknown fields go into `meta`. Those of a newer `format` are left out.
    """
    try:
        text = data if isinstance(data, str) else data.decode(encoding)
    except UnicodeDecodeError as exc:
        raise BadStartTask(f"it is not text in {encoding} ({exc.reason} at byte {exc.start}); see redis_encoding") from None
    text = text.strip()
    if not text.startswith("{"):
        if not _is_url(text):
            raise BadStartTask("it is neither a URL with a scheme nor a JSON object")
        return StartTask(url=text)
    try:
        task = _with_others(text, to_meta=others_to_meta)
    except msgspec.ValidationError as exc:
        raise BadStartTask(_explained(str(exc))) from None
    except msgspec.DecodeError as exc:
        hint = " (half a surrogate pair is not text)" if r"\ud" in text.lower() else ""
        raise BadStartTask(f"it is not valid JSON: {exc}{hint}") from None
    except RecursionError:
        raise BadStartTask("it is nested too deeply") from None
    if not _is_url(task.url):
        raise BadStartTask(f"field 'url': {task.url!r} has no scheme, such as https://")
    if task.method is not None and not _is_token(task.method):
        raise BadStartTask(f"field 'method': {task.method!r:.100} is not an HTTP method")
    for header in task.headers:
        if not _is_token(header):
            raise BadStartTask(f"field 'headers': {header!r:.100} is not the name of a header")
    given = [field for field, is_given in _BODIES.items() if is_given(task)]
    if len(given) > 1:
        raise BadStartTask(f"fields {given[0]!r} and {given[1]!r}: a request has one body, give one of {', '.join(_BODIES)}")
    return task


def _with_others(text: str, *, to_meta: bool) -> StartTask:
    """Decode a task; where it has unknown fields that are not a mistake, without them or with them in `meta`."""
    try:
        return _decode(text)
    except msgspec.ValidationError as exc:
        if not _UNKNOWN.match(str(exc)):
            raise
        task = _decode_any(text)
        if task.format <= FORMAT:
            if not to_meta:
                raise
            fields = msgspec.json.decode(text)
            task.meta = {name: value for name, value in fields.items() if name not in FIELDS} | task.meta
        return task


def _explained(message: str) -> str:
    """Return msgspec's message in the terms of this format."""
    if found := _UNKNOWN.match(message):
        return f"unknown field {found[1]!r:.100}; known are {', '.join(FIELDS)} (data of a form goes into 'formdata')"
    if found := _MISSING.match(message):
        return f"field {found[1]!r} is missing"
    if found := _AT.match(message):
        what, field, inside = found.groups()
        place = f"a value in field {field!r}" if inside else f"field {field!r}"
        return f"{place}: {what[:1].lower()}{what[1:]}"
    return message


CHUNK = 500
"""Tasks pushed by one call of the script."""
PENDING_S = 3600.0
"""A pending mark older than this counts as forgotten: its scan was lost with a dead request."""


@dataclass(frozen=True, kw_only=True)
class Seed:
    """A start task; `wait_s` must lie between two seedings of it."""

    id: str
    data: bytes
    wait_s: float


class SeedOutcome(StrEnum):
    """The outcomes of a seed, in the words of `seed.lua`."""

    SEEDED = "seeded"
    PENDING = "pending"  # seeded before, and not finished
    EARLY = "early"  # seeded just now
    FULL = "full"  # too many are pending


@dataclass(frozen=True, kw_only=True)
class Seeding:
    """The outcome of one seed. `at` is epoch seconds: when it was seeded, or is due; for FULL it is the limit."""

    outcome: SeedOutcome
    at: float


def seed(
    client: redis.Redis,
    keys: CrawlKeys,
    seeds: Sequence[Seed],
    *,
    max_pending: int,
    force: bool = False,
    pending_s: float = PENDING_S,
) -> list[Seeding]:
    """Seed the first of `seeds` that are not pending and were not seeded just now (with `force` also these), up to `max_pending`
    pending ones. Return the outcome of each, in the order given.
    """
    operands: list[str | bytes | int] = []
    for one in seeds:
        operands += (one.id, int(one.wait_s * 1000), one.data)
    args = {"max_pending": max_pending, "pending_ms": int(pending_s * 1000), "force": int(force), "tasks": operands}
    outcomes = script("seed")(client, keys, args)
    return [
        Seeding(outcome=SeedOutcome(outcome.decode()), at=at if outcome == b"full" else at / 1000) for outcome, at in outcomes
    ]


def pending(client: redis.Redis, keys: CrawlKeys, ids: Sequence[str], now: float) -> dict[str, float]:
    """Return the pending ones of these start tasks at `now`, each with the time of its seeding (epoch s)."""
    found = cast("list[bytes | None]", client.hmget(keys.pending(), list(ids))) if ids else []
    known = {name.encode(): text for name, text in zip(ids, found, strict=True) if text is not None}
    marks = readable(known, mark_of)
    return {name: since for name, since in marks.items() if since > now - PENDING_S}


class NamedTask(NamedTuple):
    """A start task with its id, of which one waits; `wide`: it also covers the narrow task with the same id."""

    id: str
    data: bytes
    wide: bool = True


def push_named(
    client: redis.Redis,
    keys: CrawlKeys,
    tasks: Sequence[NamedTask],
    newest_fields: Sequence[str] = (),
    *,
    lane: Literal["", "later"] = "",
) -> int:
    """Append start tasks, each in the place of the one with its id that waits, if any; the number of tasks that wait then.

    In the lane "later" those are left out whose id waits in the start key already; where that task is not wide and this one is,
    it becomes so. `newest_fields` as those of the spider (`RedisMixin`).
    """
    fields, waiting = msgspec.msgpack.encode(list(newest_fields)), 0
    for begin in range(0, len(tasks), CHUNK):
        operands = [operand for task in tasks[begin : begin + CHUNK] for operand in (task.id, int(task.wide), task.data)]
        args = {"newest_fields": fields, "to_lane": int(lane == "later"), "tasks": operands}
        waiting = int(script("push_tasks")(client, keys, args))
    return waiting


def in_overflow(client: redis.Redis, keys: CrawlKeys, turn: str) -> int:
    """Return the number of fed start tasks with this value of `turn_by` (for forums: of a site) in the overflow. O(log n)."""
    return client.zlexcount(keys.overflow_order(), f"[{turn}\0", f"({turn}\1")


def mark_of(name: str, raw: bytes) -> float:  # noqa: ARG001 - the form of what reads a field
    """Return the time at which a task was seeded (epoch s, of the Redis's milliseconds). Raises ValueError."""
    return number(raw, 0.0, LATEST * 1000) / 1000


@dataclass(kw_only=True)
class Pushed:
    """The outcome of pushing tasks."""

    queued: int = 0
    refused: dict[int, str] = field(default_factory=dict)
    """Position (the first is 1) -> the fault."""
    waiting: int = 0
    """Tasks that wait after the last batch."""
    known: int = 0
    """Tasks that are left out because their rows are stored."""
    settled: int = 0
    """Position up to which each task is queued or refused."""
    no_room: int = 0
    """Tasks that are refused because so many wait already."""
    full_at: int = 0
    """Position of the first of them; all after it are refused, too."""
    max_waiting: int = 0

    def reasons(self) -> dict[str, str]:
        """Return all faults by position; tasks without room have one, as in `{"12-99": "no room ..."}`."""
        found = {str(place): reason for place, reason in self.refused.items()}
        if self.no_room:
            found[f"{self.full_at}-{self.settled}"] = self.no_room_sentence()
        return found

    def no_room_sentence(self) -> str:
        """Return the reason of the tasks without room."""
        return f"no room for {self.no_room:,}: {self.waiting:,} start tasks wait, max_waiting = {self.max_waiting:,}"


def push_urls(
    client: redis.Redis,
    keys: CrawlKeys,
    tasks: Iterable[str | bytes | Mapping[str, Any]],
    *,
    unique: bool = False,
    raw: bool = False,
    schemes: Collection[str] = WEB,
    max_waiting: int = 0,
    wait: Callable[[Pushed], None] | None = None,
    known: Callable[[Sequence[bytes]], Sequence[bool]] = lambda tasks: [False] * len(tasks),
) -> Iterator[Pushed]:
    """Append start tasks in the order given; yields what became of them so far after each batch of at most `CHUNK`.

    A task is a URL, or the fields of `StartTask` as a mapping or as JSON text. One that is wrong is refused and named, the
    others go on. `unique`: all are queued, and the crawl's dupefilter leaves out what it knows when a crawler takes them
    (`dont_filter` is false; else start tasks are always fetched and not remembered, as in scrapy-redis). In a start key that is
    a sorted set the task's `priority` is its score. `raw`: bytes in a format of the spider's own are queued as they are. URLs
    have one of `schemes`. `known` is asked for each batch which tasks to leave out.

    Where `max_waiting` tasks wait (0: any number may), those that do not fit are refused, with all after them. `wait` is called
    in place of that, as often as there is no room; what is queued until then was yielded.
    Raises `redis.RedisError`: what was yielded is queued, the batch after it wholly or not at all, as far as Redis still could
    answer.
    """
    rest, done = iter(tasks), Pushed(max_waiting=max_waiting)
    while batch := list(islice(rest, CHUNK)):
        good: list[tuple[int, bytes, int]] = []
        end = done.settled + len(batch)
        for place, one in enumerate(batch, done.settled + 1):
            try:
                is_raw = raw and isinstance(one, bytes)
                text, priority = (one, 0) if is_raw else encoded(one, unique=unique, schemes=schemes)
                good.append((place, text, priority))  # type: ignore[arg-type]
            except BadStartTask as error:
                done.refused[place] = str(error)
        stored = known([text for _, text, _ in good]) if good else []
        good = [one for one, is_known in zip(good, stored, strict=True) if not is_known]
        done.known += sum(stored)
        while good and not done.no_room:
            fitted, done.waiting = _push(client, keys, good, max_waiting)
            done.queued, good = done.queued + fitted, good[fitted:]
            if not good or wait is None:
                break
            done.settled = good[0][0] - 1
            yield done
            wait(done)
        if good:
            done.full_at = done.full_at or good[0][0]
            done.no_room += len(good)
            with suppress(redis.ResponseError):  # what others have written there must not stop the seeding
                client.hincrby(keys.stats_hash(), "start_tasks/refused", len(good))
        done.settled = end
        yield done


def encoded(task: str | bytes | Mapping[str, Any], *, unique: bool = False, schemes: Collection[str] = WEB) -> tuple[bytes, int]:
    """Return the text of a start task and its priority. Raises BadStartTask."""
    if isinstance(task, Mapping):
        try:
            task = msgspec.json.encode(dict(task))
        except (TypeError, ValueError) as error:
            raise BadStartTask(f"it cannot be written as JSON: {error}") from None
    elif not isinstance(task, (str, bytes)):
        raise BadStartTask(f"{task!r:.100} is neither a URL nor an object with the field url")
    text = (task.encode() if isinstance(task, str) else task).strip()
    checked = read(text)
    if (scheme := checked.url.partition(":")[0].lower()) not in schemes:
        fetched = ", ".join(sorted(schemes))
        raise BadStartTask(f"{checked.url[:100]!r}: its crawlers fetch {fetched}, not {scheme}; DOWNLOAD_HANDLERS opens it")
    try:
        has_host = scheme not in WEB or bool((parts := urlsplit(checked.url)).hostname and parts.port != 0)
    except ValueError:  # a port that is none, brackets that are not closed
        has_host = False
    if not has_host:
        raise BadStartTask(f"{checked.url[:100]!r} has no host, or a port that is none")
    if unique:
        fields = msgspec.json.decode(text) if text.startswith(b"{") else {"url": checked.url}
        text = msgspec.json.encode(fields | {"dont_filter": False})
    return text, checked.priority


def _push(client: redis.Redis, keys: CrawlKeys, tasks: Sequence[tuple[int, bytes, int]], max_waiting: int) -> tuple[int, int]:
    """Return how many of the tasks were queued, the first ones, and how many wait then."""
    operands = [operand for _, text, priority in tasks for operand in (priority, text)]
    queued, waiting = script("push_start_tasks")(client, keys, {"max_waiting": max_waiting, "tasks": operands})
    return int(queued), int(waiting)
