"""Scheduled tasks as data, and the leader of several beats, which alone sends.

An operator changes entries while the fleet runs; rounds are noted before they are sent and when a worker begins them. The leader
holds a lock with a TTL and a fencing token; the others wait for its place. A leader that was paused, cut off or robbed of its
lock finds out before it sends: its note of a round (`Schedules.note`) is refused, because the token is another beat's by then. A
round that it had noted before, and sends late, is not begun by any worker (`beat_begin.lua`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec
import redis

from redis_components.errors import ConfigError
from redis_components.server.fleet_file import FILE, declared, faulty, record_of
from redis_components.server.untrusted_values import (
    LATEST,
    Epoch,
    RecordStore,
    WrongValue,
    answers_of,
    as_text,
    hash_at,
    readable,
    server_time,
    whole,
)
from workers.state.keys import FleetKeys

from .keys import script

if TYPE_CHECKING:
    from celery.schedules import crontab


SIGNED = "schedule"
MAX_ENTRIES = 1000  # of one fleet: beat reads them all every few seconds


SPAN = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*([smhd])?", re.ASCII)
UNITS = {None: 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def parse_span(text: str) -> float:
    """Return the seconds in `10s`, `5m`, `2h`, `1d`, or a number of seconds. Raises ConfigError."""
    if not (span := SPAN.fullmatch(text.strip())):
        raise ConfigError(f"--every {text!r} is not a duration: write 10s, 5m, 2h or 1d")
    return float(span[1]) * UNITS[span[2]]


def parse_cron(cron: str) -> crontab:
    """Parse the five fields with Celery's own parser. Raises ConfigError."""
    from celery.schedules import ParseException, crontab  # where a line is read: not with every command of `trawl`

    fields = cron.split()
    if len(fields) != 5:
        raise ConfigError(
            f"cron: {cron!r:.100} needs five fields, as in '*/5 * * * *': minute, hour, day of the month, month, day of the week"
        )
    minute, hour, day, month, weekday = fields
    try:
        parsed = crontab(minute, hour, weekday, day, month, nowfun=lambda: datetime.now(UTC))
    except (ValueError, ParseException) as error:
        raise ConfigError(f"cron: {cron!r:.100} is wrong: {error}") from None
    if not any(min(parsed.day_of_month) <= _DAYS[month] for month in parsed.month_of_year):
        raise ConfigError(f"cron: {cron!r:.100} is wrong: no such month has a day {min(parsed.day_of_month)}, it never occurs")
    return parsed


_DAYS = dict(enumerate((31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31), start=1))


class StoredEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The changes of a scheduled task, or the whole of one that was added. None: as in `celeryconfig.py`."""

    task: str | None = None
    every_s: float | None = None
    cron: str | None = None  # five fields; it takes the place of `every_s`, and the other way round
    timezone: str | None = None  # of `cron`; None: UTC
    catch_up: bool | None = None  # False: a round that was due while no beat led is left out
    args: list[Any] | None = None
    kwargs: dict[str, Any] | None = None
    enabled: bool | None = None
    changed_at: Epoch = 0.0  # epoch s, Redis's clock


@dataclass(frozen=True, kw_only=True)
class Unreadable:
    """An entry that is left out, and why: the others go on."""

    reason: str


_IN_FILE = [name for name in StoredEntry.__struct_fields__ if name != "changed_at"]


_last_in_file: dict[str, StoredEntry] = {}


def schedule_in_file() -> tuple[dict[str, StoredEntry], dict[str, str]]:
    """Return the entries of [schedule] in `trawl.toml`, and the faults of wrong ones by name. While the file cannot be read, the
    entries are as they were.
    """
    entries: dict[str, StoredEntry] = {}
    faults: dict[str, str] = {}
    try:
        found = declared("schedule")
    except ConfigError as error:
        return _last_in_file, {FILE: str(error)}
    for name, values in found.tables["schedule"].items() if found else ():
        entry, wrong = record_of(values, StoredEntry, f"schedule.{name}", _IN_FILE)
        if entry is not None:
            entries[name] = entry
        elif found:
            faults[name] = str(faulty(found.file, wrong))
    _last_in_file.clear()
    _last_in_file.update(entries)
    return entries, faults


class RoundState(StrEnum):
    """The progress of a round."""

    SEEN = "seen"  # no round yet: a cron entry counts from here
    DUE = "due"  # about to be sent; the next leader sends it unless it is marked as sent
    SENT = "sent"


@dataclass(frozen=True, kw_only=True)
class Round:
    """The last round of an entry. Times are epoch s by Redis's clock."""

    due: float
    sent_at: float | None
    state: RoundState


class Schedules(RecordStore[StoredEntry]):
    """The schedules of one fleet. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis, keys: FleetKeys | None = None) -> None:
        self._keys = keys or FleetKeys()
        super().__init__(client, self._keys.schedule(), StoredEntry, signed=SIGNED)

    def stored(self) -> dict[str, StoredEntry | Unreadable]:
        """Return all changed and added entries, by name. With signing on, an unsigned one counts as unreadable: beat would sign
        the task that it names.
        """
        found: dict[str, StoredEntry | Unreadable] = {}
        for name, raw in ((as_text(name), raw) for name, raw in hash_at(self._client, self._key).items()):
            try:
                found[name] = self.parse(name, raw)
            except WrongValue as error:
                found[name] = Unreadable(reason=f"{name}: the entry {error}; `trawl schedule set` or `remove` it")
            except ValueError as error:
                found[name] = Unreadable(reason=f"cannot be read ({error})")
        return found

    def set(self, name: str, entry: StoredEntry) -> None:
        """Add or replace; takes effect within seconds. Raises ConfigError when there are too many, or it is too large."""
        if self._client.hlen(self._key) >= MAX_ENTRIES:
            raise ConfigError(f"there are {MAX_ENTRIES} scheduled tasks already: remove some with `trawl schedule remove`")
        stamped = msgspec.structs.replace(entry, changed_at=server_time(self._client))
        # whole seconds as a float: a beat of the version before checks the entry as it reads it
        as_read = msgspec.json.decode(msgspec.json.encode(stamped), type=StoredEntry)
        self._client.hset(self._key, name, self.encoded(name, as_read))

    def remove(self, name: str) -> bool:
        """Forget what was changed or added under this name; False when nothing was."""
        return bool(self._client.hdel(self._key, name))

    def rounds(self) -> dict[str, Round]:
        """Return the last round of each entry; one that cannot be read counts as none."""
        return readable(hash_at(self._client, self._keys.beat_runs()), round_of)  # as many as there are entries

    def note(self, token: int, name: str, due: float, state: RoundState) -> bool:
        """Record the progress of a round; False when the beat with this token does not lead any more: then it must not send."""
        keys = {"leader": self._keys.beat_leader(), "runs": self._keys.beat_runs()}
        args = {"token": token, "name": name, "due_ms": round(due * 1000), "state": state}
        return bool(script("beat_note")(self._client, keys, args) == b"noted")

    def forget_rounds(self, names: list[str]) -> None:
        """Drop the rounds of entries that are no more."""
        if names:
            self._client.hdel(self._keys.beat_runs(), *names)
            self._client.hdel(self._keys.beat_begun(), *names)

    def begin(self, name: str, token: int, due: float) -> bool:
        """Begin a round in a worker; False when it was begun already, or a newer leader's was."""
        args = {"name": name, "token": token, "due_ms": round(due * 1000)}
        return bool(script("beat_begin")(self._client, {"begun": self._keys.beat_begun()}, args) == b"begun")


def round_of(name: str, raw: bytes) -> Round:  # noqa: ARG001 - the form of what reads a field
    """Return the last round of an entry. Raises ValueError."""
    due, sent, state = raw.decode().split("|")
    latest = round(LATEST * 1000)
    return Round(due=whole(due, 0, latest) / 1000, sent_at=whole(sent, 0, latest) / 1000 or None, state=RoundState(state))


LEAD_TTL_S = 6.0  # a leader that died is noticed after this; it renews every second
MAX_SILENCE_S = 60.0  # a leader that has sent nothing for this time is stalled


@dataclass(frozen=True, kw_only=True)
class Standing:
    """The answer to a beat that tries to lead."""

    leads: bool
    token: int  # the leader's fencing token
    leader: str
    left_s: float  # until the leader's lock runs out
    now: float  # epoch s, Redis's clock


@dataclass(frozen=True, kw_only=True)
class BeatView:
    """The beats as others see them."""

    leader: str | None  # `host:pid`; None: none leads
    waiting: tuple[str, ...]  # those that would take its place
    silent_s: float | None  # since the last task was sent; None: none was ever sent

    @property
    def stalled(self) -> bool:
        """Nothing is sent, for any reason. The fleet's own tasks are due at least every `MAX_SILENCE_S`."""
        return self.leader is None or self.silent_s is None or self.silent_s > MAX_SILENCE_S

    def sentence(self) -> str:
        """Return one sentence for display: the leader, or that there is none and what stands still."""
        since = "nothing was ever sent" if self.silent_s is None else f"nothing was sent for {self.silent_s:.0f} s"
        if self.leader is None:
            return f"none leads, {since}: nothing is seeded, launched or stored. Start one with `celery -A tasks beat`."
        if self.stalled:
            return f"{self.leader} leads, but {since}: nothing is seeded, launched or stored. See its log for the cause."
        others = f", {len(self.waiting)} more wait" if len(self.waiting) > 1 else ", one more waits" if self.waiting else ""
        return f"{self.leader} leads{others}"


class Beats:
    """The beats of one fleet. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis, keys: FleetKeys | None = None, *, ttl_s: float = LEAD_TTL_S) -> None:
        self._client = client
        self._keys = keys or FleetKeys()
        self._ttl_ms = round(ttl_s * 1000)

    def lead(self, owner: str) -> Standing:
        """Ask to lead, or to go on leading. `owner` is unique for each process: `host:pid#random`, of which people see the
        first part.
        """
        keys = {"leader": self._keys.beat_leader(), "fences": self._keys.fences(), "beats": self._keys.beats()}
        outcome, token, leader, left_ms, now_ms = script("beat_lead")(
            self._client, keys, {"owner": owner, "ttl_ms": self._ttl_ms}
        )
        return Standing(
            leads=outcome == b"leads", token=int(token), leader=_shown(leader), left_s=left_ms / 1000, now=now_ms / 1000
        )

    def resign(self, owner: str) -> bool:
        """Leave; True when it led: the next one takes its place at once."""
        keys = {"leader": self._keys.beat_leader(), "beats": self._keys.beats()}
        return bool(script("beat_resign")(self._client, keys, {"owner": owner}) == b"resigned")

    def look(self, now: float) -> BeatView:
        """Return the leader and the waiting beats; `now` is Redis's time (`Registry.now`)."""
        with self._client.pipeline(transaction=False) as pipe:
            pipe.get(self._keys.beat_leader())
            pipe.zrangebyscore(self._keys.beats(), (now * 1000) - self._ttl_ms, "+inf", start=0, num=100)
            held, alive = answers_of(pipe)
        leader = (_shown(as_text(held).partition("|")[2]) or None) if held else None
        sent = [one.sent_at for one in Schedules(self._client, self._keys).rounds().values() if one.sent_at]
        return BeatView(
            leader=leader,
            waiting=tuple(sorted(name for name in (_shown(owner) for owner in alive or ()) if name != leader)),
            silent_s=max(0.0, now - max(sent)) if sent else None,
        )


def _shown(owner: bytes | str) -> str:
    return as_text(owner).rpartition("#")[0]
