"""The actions of the page: each with its form's fields and its consequences. The commands call the same functions."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import redis

from redis_components.admin import dead_letters
from redis_components.errors import ConfigError, unknown_name
from redis_components.frontier.holds import HoldKind
from redis_components.items import stream as refused_items
from redis_components.keys import CrawlKeys, CrawlRecords
from workers.fleet.holds import HoldTarget, hold, resume
from workers.fleet.roll import start_roll
from workers.fleet.sizes import declared_fleet, scale
from workers.state.holds import Held
from workers.state.registry import Registry
from workers.state.rolls import RollNote
from workers.state.services import Autoscaling

LONGEST = 500  # characters of a line


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field; `kind` is `line`, `number` or `switch`."""

    name: str
    label: str
    kind: str = "line"
    needed: bool = False
    fixed: bool = False  # the object of the action: shown, not asked for, where the address names it
    hint: str = ""


class Given:
    """The submitted values, checked against the fields. Raises ConfigError with all faults, also missing values."""

    def __init__(self, fields: Sequence[Field], form: Mapping[str, Sequence[str]]) -> None:
        self._values: dict[str, str] = {}
        faults = list[str]()
        for one in fields:
            value = (form.get(one.name) or [""])[-1].strip()
            if one.needed and not value:
                faults.append(f"{one.label}: is missing")
            elif len(value) > LONGEST or not value.isprintable():
                faults.append(f"{one.label}: must be one line of at most {LONGEST} characters")
            self._values[one.name] = value
        if faults:
            raise ConfigError("; ".join(faults))

    def text(self, name: str) -> str:
        """Return the value of a field, without white space around it."""
        return self._values[name]

    def is_on(self, name: str) -> bool:
        """Return True if a switch was set."""
        return bool(self._values[name])

    def whole(self, name: str) -> int | None:
        """Return a whole number; None for an empty field. Raises ConfigError."""
        text = self._values[name]
        if text and not (text.isascii() and text.isdigit() and len(text) < 10):
            raise ConfigError(f"{name} {text!r:.40}: must be a whole number")
        return int(text) if text else None

    def words(self, action: str) -> list[str]:
        """Return the act as the audit keeps it: `["pause", "books", "--reason=moved"]`, as the command would be written."""
        named = [("", value) if name in ("service", "site") else (f"--{name}", value) for name, value in self._values.items()]
        return [action, *(f"{key}={' '.join(value.split())}" if key else value for key, value in named if value)]


Do = Callable[[redis.Redis, Given, str], Iterable[str]]
"""Does it for the named person, and returns the result, line by line. Raises TrawlError and `redis.RedisError`."""


@dataclass(frozen=True, kw_only=True)
class Action:
    """One thing that can be done; `undo`: what takes it back, "" where nothing does."""

    title: str
    follows: str
    do: Do
    fields: tuple[Field, ...]
    undo: str = ""


def _target(given: Given) -> HoldTarget:
    """Return the target: a service, a site, a site in a service; without either the whole fleet."""
    service, site = given.text("service"), given.text("site")
    return HoldTarget(services=(service,) if service else (), site=site, whole=not (service or site))


def _holding(word: HoldKind) -> Do:
    def do(client: redis.Redis, given: Given, by: str) -> Iterable[str]:
        return _held(hold(client, _target(given), word, reason=given.text("reason"), by=by))

    return do


def _held(found: Iterable[Held]) -> list[str]:
    return [f"{one.what}: {one.hold}" for one in found] or ["nothing is held"]


def _resume(client: redis.Redis, given: Given, by: str) -> Iterable[str]:  # noqa: ARG001 - the form of every action
    return _held(resume(client, _target(given)))


def _scale(client: redis.Redis, given: Given, by: str) -> Iterable[str]:  # noqa: ARG001
    size = given.whole("size")
    if size is None:
        raise ConfigError("size: is missing")
    sizes = scale(Registry(client), Autoscaling(client), {given.text("service"): size})
    return [f"{name}: {size} crawlers" for name, size in sizes.items()]


def _roll(client: redis.Redis, given: Given, by: str) -> Iterable[str]:  # noqa: ARG001
    named = [given.text("service")] if given.text("service") else []
    return [start_roll(Registry(client), RollNote(client), named).sentence()]


def _crawl(client: redis.Redis, service: str) -> CrawlKeys:
    """Return the keys of a crawl. Raises ConfigError for a service that the fleet never had."""
    records, fleet = CrawlRecords(client), declared_fleet(client)
    if service not in fleet and service not in records.all():
        raise unknown_name("service", service, fleet)
    return records.keys_of_all([service])[service]


def _replay(client: redis.Redis, given: Given, by: str) -> Iterable[str]:  # noqa: ARG001
    keys, most, reason = _crawl(client, given.text("service")), given.whole("limit"), given.text("reason")
    done = dead_letters.replay(client, keys, limit=most, reason=reason)
    yield f"replayed: {done.done:,} requests and start tasks"
    if given.is_on("items"):
        yield f"replayed: {refused_items.replay(client, keys, limit=most, reason=reason).done:,} refused items"
    if left := done.stuck + done.foreign:
        yield f"left in the list: {left:,} entries that are not valid requests, or not Trawl's"


def actions_of(table: Path, done_by: Mapping[str, Do]) -> dict[str, Action]:
    """Read the forms of a table; each is done by the function of its name."""
    found = {}
    for name, row in tomllib.loads(table.read_text("utf-8")).items():
        fields = tuple(Field(**one) for one in row.pop("fields"))
        found[name] = Action(**row, fields=fields, do=done_by[name])
    return found


ACTIONS = actions_of(
    Path(__file__).with_name("actions.toml"),
    {
        "pause": _holding(HoldKind.PAUSE),
        "drain": _holding(HoldKind.DRAIN),
        "resume": _resume,
        "scale": _scale,
        "roll": _roll,
        "replay": _replay,
    },
)
