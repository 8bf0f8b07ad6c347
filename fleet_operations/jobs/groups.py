"""Groups of spiders as `trawl.toml` declares them, and the choice of their members.

[groups.brands]
spiders = ["shop_*", "books"]        # names or patterns; or modules = ["shop.spiders.brands"], or attributes = {owner = "ops"}
cron = "0 3 * * *"
timezone = "Europe/Berlin"
deadline = "06:00"
at_once = 8
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

import msgspec

from redis_components.errors import ConfigError, did_you_mean, unknown_name
from redis_components.politeness.limits import BY_CONFIG, MINUTE_MS, LaneLimits, check_name
from redis_components.server.fleet_file import FILE, declared, faulty, record_of
from redis_components.server.names import is_name
from workers.state.beats import SPAN, UNITS, StoredEntry, parse_cron
from workers.state.group_runs import Bounds, RunTerms, quota_lane
from workers.targets import is_target

from .spider_list import SpiderEntry

Overlap = Literal["skip", "queue", "replace"]
ALL = "all"
"""Name of the group of `trawl run --all`."""
TASK = "trawl.run_group"
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Group(RunTerms):
    """The declaration of a group. Members are the spiders that fit to one of `spiders`, `modules` and `attributes`."""

    spiders: tuple[str, ...] = ()
    """Names, or patterns as in a shell."""
    modules: tuple[str, ...] = ()
    """Modules, with all that are below them."""
    attributes: dict[str, str] = field(default_factory=dict)
    """Attributes of spider classes, with a pattern of the value: the spider has them all."""
    exclude: tuple[str, ...] = ()
    """Names or patterns of spiders that are left out."""
    cron: str = ""
    """Minute, hour, day of the month, month, day of the week; "": the group runs when it is asked for."""
    overlap: Overlap = "skip"
    """A run that is due while the last one goes on is left out, begins after it, or takes its place."""
    catch_up: bool = True
    """A run that was due while no beat led is made up once."""

    def entry(self, name: str) -> StoredEntry:
        """Return the entry of beat's schedule for its runs."""
        kwargs = {"group": name}
        return StoredEntry(task=TASK, kwargs=kwargs, cron=self.cron, timezone=self.timezone, catch_up=self.catch_up)


@dataclass(frozen=True, kw_only=True)
class Quota:
    """The most that the groups of an owner take of the fleet."""

    places: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 0
    """Crawlers; 0: any number."""
    memory_mb: Annotated[int, msgspec.Meta(ge=0, le=100_000_000)] = 0
    """Memory of its crawlers, each counted with its group's `memory_mb`; 0: any."""
    per_minute: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    """Requests in any minute, in addition to the limits of sites; 0: any number."""

    def most_crawlers(self, memory_mb: int) -> int:
        """Return the crawlers that may run, each with so much memory; 0: any number."""
        bounds = [self.places, self.memory_mb // memory_mb if memory_mb and self.memory_mb else 0]
        return min((one for one in bounds if one), default=0)

    def limits(self) -> LaneLimits:
        """Return the limits of the lane that counts its requests."""
        return LaneLimits(quotas=((self.per_minute, MINUTE_MS),) if self.per_minute else (), by=BY_CONFIG)


def limits_of_quotas() -> dict[str, LaneLimits]:
    """Return the limits of the lanes of the quotas that bound requests. Raises ConfigError."""
    found = declared("quotas")
    quotas = {name: quota_named(name) for name in (found.tables["quotas"] if found else {})}
    return {quota_lane(name): one.limits() for name, one in quotas.items() if one.per_minute}


def quota_named(name: str) -> Quota:
    """Return a quota of `trawl.toml`; without a name one without bounds. Raises ConfigError."""
    found = declared("quotas") if name else None
    table = found.tables["quotas"] if found else {}
    if name and name not in table:
        raise unknown_name("quota", name, table)
    check_name(quota_lane(name or "none"))
    quota, faults = record_of(table.get(name, {}), Quota, f"quotas.{name}", [one.name for one in fields(Quota)])
    if quota is None and found:
        raise faulty(found.file, faults)
    return quota or Quota()


_FIELDS = [one.name for one in fields(Group)]


def groups_in_file() -> dict[str, Group]:
    """Return the groups that `trawl.toml` declares, by name. Raises ConfigError with a line for each fault."""
    found = declared("groups")
    groups, faults = read_groups(found.tables["groups"] if found else {})
    if faults and found:
        raise faulty(found.file, [line for lines in faults.values() for line in lines])
    return groups


def read_groups(table: Mapping[str, Mapping[str, Any]]) -> tuple[dict[str, Group], dict[str, list[str]]]:
    """Return the groups of a table that are right, and the faults of the others by name, as `groups.NAME.KEY: fault`."""
    groups: dict[str, Group] = {}
    faults: dict[str, list[str]] = {}
    for name, values in table.items():
        where = f"groups.{name}"
        group, wrong = record_of(values, Group, where, _FIELDS)
        wrong += _unknown_bounds(values.get("bounds"), where)
        wrong = wrong if wrong or group is None else list(_faults(name, group, where))
        if wrong:
            faults[name] = wrong
        elif group is not None:
            groups[name] = group
    return groups, faults


def _unknown_bounds(bounds: Any, where: str) -> Iterator[str]:
    known = [one.name for one in fields(Bounds)]
    for member, one in bounds.items() if isinstance(bounds, dict) else ():
        if isinstance(one, dict):
            yield from record_of(one, Bounds, f"{where}.bounds.{member}", known)[1]


def _faults(name: str, group: Group, where: str) -> Iterator[str]:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", name):
        yield f"{where}: the name of a group has letters, digits, _ and -, at most 40"
    if not (group.spiders or group.modules or group.attributes):
        yield f"{where}: has no members: name spiders, modules or attributes"
    if ":" in group.files and not (group.files.startswith("s3:") and is_target(group.files)):
        yield f"{where}.files: {group.files!r:.100} is not a place: write a folder, or s3://BUCKET/PREFIX"
    for module in (*group.modules, *filter(None, [group.project])):
        if not _MODULE.fullmatch(module):
            yield f"{where}: {module!r:.100} is not a module: write one such as shop.spiders"
    try:
        zone_of(group.timezone)
        deadline_at(group, 0.0)
        if group.cron:
            parse_cron(group.cron)
        quota = quota_named(group.quota)
        if quota.memory_mb and not 0 < group.memory_mb <= quota.memory_mb:
            raise ConfigError(f"memory_mb: the quota {group.quota} bounds it: name that of a crawler, at most {quota.memory_mb}")
        if quota.places and group.crawlers > quota.places:
            raise ConfigError(f"crawlers: {group.crawlers} are more than the {quota.places} places of the quota {group.quota}")
    except ConfigError as error:
        yield f"{where}.{error}"


def zone_of(name: str) -> ZoneInfo:
    """Return a time zone. Raises ConfigError."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ConfigError(f"timezone: {name!r:.100} is not a time zone: write one such as Europe/Berlin") from None


def deadline_at(group: RunTerms, start: float) -> float | None:
    """Return the time (epoch s) at which a run that begins at `start` ends at the latest; None for no deadline.

    Raises ConfigError. A time of the day is the first one after the start, by the group's clock.
    """
    if not group.deadline:
        return None
    if (span := SPAN.fullmatch(group.deadline)) and span[2]:
        return start + float(span[1]) * UNITS[span[2]]
    if not (clock := _CLOCK.fullmatch(group.deadline)):
        raise ConfigError(f"deadline: {group.deadline!r:.100} is neither a time of the day, as 06:00, nor a time, as 3h")
    begin = datetime.fromtimestamp(start, zone_of(group.timezone))
    end = begin.replace(hour=int(clock[1]), minute=int(clock[2]), second=0, microsecond=0, fold=0)
    while end.timestamp() <= start:
        end += timedelta(days=1)
    return end.timestamp()


def members_of(group: Group, known: Iterable[SpiderEntry]) -> list[str]:
    """Return the names of the group's members among the spiders of a project, in their order; each once."""
    chosen = [one.name for one in known if _fits(group, one) and not _matches(one.name, group.exclude)]
    return list(dict.fromkeys(chosen))


def check_names(group: Group, known: Iterable[SpiderEntry]) -> None:
    """Raise ConfigError for a name in `spiders` that no spider has, with the nearest one."""
    names = [one.name for one in known]
    there = set(names)
    for name in group.spiders:
        if not any(sign in name for sign in "*?[") and name not in there:
            raise ConfigError(f"there is no spider {name!r:.100} in the project{did_you_mean(name, names)}")
        if not is_name(name) and name in there:
            raise ConfigError(f"{name!r:.100} cannot be the name of a job: rename the spider, or leave it out")


def _fits(group: Group, one: SpiderEntry) -> bool:
    if _matches(one.name, group.spiders):
        return True
    if any(f"{one.module}.".startswith(f"{module}.") for module in group.modules):
        return True
    wanted = group.attributes.items()
    return bool(wanted) and all(name in one.attributes and fnmatchcase(one.attributes[name], value) for name, value in wanted)


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)


_last_entries: dict[str, StoredEntry] = {}


def group_entries() -> tuple[dict[str, StoredEntry], dict[str, str]]:
    """Return an entry of beat's schedule for each group with a `cron`, as `group.NAME`, and the faults of wrong ones by name.
    While the file cannot be read, the entries are as they were.
    """
    try:
        found = declared("groups")
    except ConfigError as error:
        return _last_entries, {FILE: str(error)}
    groups, faults = read_groups(found.tables["groups"] if found else {})
    _last_entries.clear()
    _last_entries.update({f"group.{name}": group.entry(name) for name, group in groups.items() if group.cron})
    return _last_entries, {f"group.{name}": str(faulty(found.file, lines)) for name, lines in faults.items() if found}


def group_named(name: str) -> Group:
    """Return a declared group; `all` has every spider of the project. Raises ConfigError."""
    groups = groups_in_file()
    if name in groups:
        return groups[name]
    if name == ALL:
        return Group(spiders=("*",))
    raise unknown_name("group", name, [*groups, ALL])
