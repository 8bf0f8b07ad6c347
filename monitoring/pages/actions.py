"""The actions of the page: each with its form's fields and its consequences. The commands call the same functions."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import redis

from redis_components.admin import dead_letters
from redis_components.admin.dead_letters import Cleared
from redis_components.admin.inspector import CrawlRecords
from redis_components.errors import ConfigError, unknown_name
from redis_components.frontier.holds import HoldKind
from redis_components.items import stream as refused_items
from redis_components.keys import CrawlKeys, limits_key
from redis_components.politeness import limits
from redis_components.server.untrusted_values import server_time
from workers.fleet.holds import Target, hold, resume
from workers.fleet.roll import start_roll
from workers.fleet.sizes import declared_fleet, desired_fleet, scale
from workers.jobs import jobs
from workers.jobs.orders import pairs
from workers.state.holds import Held
from workers.state.registry import Registry
from workers.state.rolls import RollNote
from workers.state.services import Autoscaling

LONGEST = 500  # characters of a line
LONGEST_TEXT = 100_000


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field; `kind` is `line`, `number`, `text` (several lines) or `switch`."""

    name: str
    label: str
    kind: str = "line"
    needed: bool = False
    fixed: bool = False  # the object of the action: shown, not asked for, where the address names it
    hint: str = ""
    default: str = ""


class Given:
    """The submitted values, checked against the fields. Raises ConfigError with all faults, also missing values."""

    def __init__(self, fields: Sequence[Field], form: Mapping[str, Sequence[str]]) -> None:
        self._values: dict[str, str] = {}
        faults = list[str]()
        for one in fields:
            value = (form.get(one.name) or [""])[-1].strip()
            longest = LONGEST_TEXT if one.kind == "text" else LONGEST
            if one.needed and not value:
                faults.append(f"{one.label}: is missing")
            elif len(value) > longest or (one.kind != "text" and not value.isprintable()):
                faults.append(f"{one.label}: must be one line of at most {longest} characters")
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

    def number(self, name: str) -> float | None:
        """Return a number; None for an empty field. Raises ConfigError."""
        text = self._values[name]
        try:
            return float(text) if text else None
        except ValueError:
            raise ConfigError(f"{name} {text!r:.40}: must be a number") from None

    def lines(self, name: str) -> list[str]:
        """Return the lines of a field, without empty ones."""
        return [line.strip() for line in self._values[name].splitlines() if line.strip()]

    def pairs(self, name: str) -> dict[str, str]:
        """Parse `NAME=VALUE` on each line. Raises ConfigError."""
        return pairs(name, self.lines(name))

    def words(self, action: str) -> list[str]:
        """Return the act as the audit keeps it: `["limit", "example.org", "--rate=3"]`, as the command would be written."""
        named = [
            ("", value) if name in ("service", "site", "job") else (f"--{name}", value) for name, value in self._values.items()
        ]
        return [action, *(f"{key}={' '.join(value.split())}" if key else value for key, value in named if value)]


Do = Callable[[redis.Redis, Given, str], Iterable[str]]
"""Does it for the named person, and returns the result, line by line. Raises TrawlError and `redis.RedisError`."""
DAY_S = 86_400.0


@dataclass(frozen=True, kw_only=True)
class Action:
    """One thing that can be done; `undo`: what takes it back, "" where nothing does."""

    title: str
    follows: str
    do: Do
    fields: tuple[Field, ...]
    undo: str = ""


def _target(given: Given) -> Target:
    """Return the target: a service, a site, a site in a service; without either the whole fleet."""
    service, site = given.text("service"), given.text("site")
    return Target(services=(service,) if service else (), site=site, whole=not (service or site))


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


def _limit(client: redis.Redis, given: Given, by: str) -> Iterable[str]:
    site, names = given.text("site"), ("rate", "concurrency", "per-hour", "per-day")
    written = any(given.text(name) for name in names)
    if given.is_on("remove") == written:
        raise ConfigError("give either limits, or `remove`")
    wanted = None
    if written:
        wanted = limits.LaneLimits.of(
            rate=given.number("rate"),
            concurrency=given.whole("concurrency"),
            per_hour=given.whole("per-hour"),
            per_day=given.whole("per-day"),
            by=by,
        )
    limits.change(client, limits_key(), site, wanted)
    return [f"{site}: {'these limits take the place of those before' if wanted else 'its limits are removed'}"]


def _crawl(client: redis.Redis, service: str) -> CrawlKeys:
    """Return the keys of a crawl. Raises ConfigError for a service that the fleet never had."""
    records, fleet = CrawlRecords(client), declared_fleet(client)
    if service not in fleet and service not in records.all():
        raise unknown_name("service", service, fleet)
    return records.keys_of_all([service])[service]


def _cleared(word: str, done: Cleared, items: Cleared | None) -> Iterable[str]:
    yield f"{word}: {done.done:,} requests and start tasks"
    if items is not None:
        yield f"{word}: {items.done:,} refused items"
    if left := done.stuck + done.foreign:
        yield f"left in the list: {left:,} entries that are not valid requests, or not Trawl's"


def _replay(client: redis.Redis, given: Given, by: str) -> Iterable[str]:  # noqa: ARG001
    keys, most, reason = _crawl(client, given.text("service")), given.whole("limit"), given.text("reason")
    done = dead_letters.replay(client, keys, limit=most, reason=reason)
    items = refused_items.replay(client, keys, limit=most, reason=reason) if given.is_on("items") else None
    return _cleared("replayed", done, items)


def _purge(client: redis.Redis, given: Given, by: str) -> Iterable[str]:  # noqa: ARG001
    keys, days = _crawl(client, given.text("service")), given.number("days")
    if (days is None) != given.is_on("all"):
        raise ConfigError("give either the age of the entries in days, or `all`")
    if days is not None and not 0 <= days < 36_500:
        raise ConfigError(f"days {days:g}: must be from 0 to 36500")
    before_s = None if days is None else server_time(client) - days * DAY_S
    done = dead_letters.purge(client, keys, before_s=before_s)
    items = refused_items.purge(client, keys, before_s=before_s) if given.is_on("items") else None
    return _cleared("deleted", done, items)


def _run(client: redis.Redis, given: Given, by: str) -> Iterable[str]:
    service = given.text("service")
    if service not in (known := declared_fleet(client)):
        raise unknown_name("service", service, known)
    order = jobs.JobOrder(
        service=service,
        crawlers=given.whole("crawlers") or 1,
        arguments=given.pairs("arguments"),
        urls=given.lines("urls"),
        by=by,
    )
    return [f"{jobs.start(client, order).id} is started"]


def _cancel(client: redis.Redis, given: Given, by: str) -> Iterable[str]:  # noqa: ARG001
    job = jobs.cancel(client, given.text("job"))
    return [f"{job.id}: {job.state}"]


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
        "limit": _limit,
        "roll": _roll,
        "replay": _replay,
        "purge": _purge,
        "run": _run,
        "cancel": _cancel,
    },
)


def present_value(client: redis.Redis, name: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the first values of an action's form: the present size of a service."""
    if name == "scale" and (size := desired_fleet(Registry(client)).get(given.get("service", ""))) is not None:
        return {"size": str(size)}
    return {}
