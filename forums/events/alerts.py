"""Alerts as rules: made and tried by `trawl alert`, read by the publisher in each round, with the rules of `trawl.toml`."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from functools import lru_cache

import msgspec
import redis

from forums.sites import site_names
from forums.state.alerts import MOST, Alert, Alerts, shown_address
from forums.state.site_faults import RULES_FILE
from forums.storage.read.event_reader import Event
from forums.storage.write.changes import Position
from redis_components.errors import ConfigError, TrawlError, did_you_mean
from redis_components.server.untrusted_values import server_time

from .expression import Filter, parse
from .outputs import Delivery, NotTaken, OutputOptions
from .rules import Rules, kinds, load, options_of

PREFIX = "alert:"
"""Beginning of the name of an alert's output, which no output of a file can have."""


def add(client: redis.Redis, alert: Alert) -> tuple[int, Alert]:
    """Send a test message, then store the alert; its events begin now. Return its number, and the alert as stored.

    Raises ConfigError with all of its faults, and TrawlError where the receiver does not take the test; then
    nothing is stored. Raises `redis.RedisError`.
    """
    made = msgspec.structs.replace(alert, secret=f"whsec_{secrets.token_hex(24)}", made_at=server_time(client))
    known = Alerts(client).all()
    number = 1 + max(map(int, known), default=0)
    rules, faults = _parsed(str(number), made)
    if made.site and made.site not in (sites := site_names()):
        faults += (f"--site {made.site!r:.100}: there is no such site file{did_you_mean(made.site, sites)}",)
    if len(known) >= MOST:
        faults += (f"there are {MOST} alerts, the most that a fleet can have: trawl alert --remove NUMBER",)
    if faults:
        raise ConfigError("; ".join(faults))
    try:
        _try(client, rules)
    except NotTaken as error:
        raise TrawlError(f"the test message was not taken, so there is no alert: {error}") from None
    return Alerts(client).put(number, made), made


def examples() -> str:
    """Return the forms of addresses that an alert may have, for people."""
    return ", ".join(dict.fromkeys(example for kind in kinds().values() for example in kind.targets.values()))


def rules_in_use(client: redis.Redis) -> tuple[Rules, dict[str, str]]:
    """Return the rules of `trawl.toml` with the alerts, and the faults by the name of the output, or as those of the file. Raises
    `redis.RedisError`.
    """
    rules, faults = Rules({}, {}), dict[str, str]()
    try:
        rules = load() or rules
    except ConfigError as error:
        faults[RULES_FILE] = str(error)
    made, wrong = alerts_as_rules(client)
    return rules.with_others(made), faults | wrong


def alerts_as_rules(client: redis.Redis) -> tuple[Rules, dict[str, str]]:
    """Return the alerts as rules, and the faults of wrong ones by the name of the output. Raises `redis.RedisError`."""
    rules, faults = Rules({}, {}), dict[str, str]()
    for number, alert in Alerts(client).all().items():
        made, wrong = _parsed(number, alert)
        rules = rules.with_others(made)
        if wrong:
            faults[f"{PREFIX}{number}"] = "; ".join(wrong)
    return rules, faults


@lru_cache(maxsize=2 * MOST)
def _parsed(number: str, alert: Alert) -> tuple[Rules, tuple[str, ...]]:
    """Return an alert as rules with one filter and one output, or empty rules and all of its faults."""
    rule, output = f"alert {number}: {alert.match:.60}", f"{PREFIX}{number}"
    found, faults = None, list[str]()
    try:
        found = parse(alert.match)
    except ConfigError as error:
        faults.append(str(error))
    options, wrong = _output_of(alert, rule)
    if found is None or options is None:
        return Rules({}, {}), (*faults, *wrong)
    return Rules({rule: _at(alert.site, found)}, {output: options}, {output: datetime.fromtimestamp(alert.made_at, UTC)}), ()


def _output_of(alert: Alert, rule: str) -> tuple[OutputOptions | None, list[str]]:
    kind = next((kind for kind in kinds().values() if alert.to.startswith(tuple(kind.targets))), None)
    if kind is None:
        return None, [f"--to {shown_address(alert.to)!r:.100}: write an address as one of these: {examples()}"]
    hours, _, zone = alert.quiet_hours.partition(" ")
    given = {"digest_minutes": alert.digest_minutes, "quiet_hours": hours, "time_zone": zone.strip()}
    more = {key: value for key, value in given.items() if value}
    if not alert.history:
        more["written_since"] = datetime.fromtimestamp(alert.made_at, UTC)
    if not more.keys() <= kind.model_fields.keys():
        return None, [f"--digest-minutes and --quiet are of messages to people, not of {alert.to.partition(':')[0]}"]
    try:
        return options_of({**kind.of_address(alert.to, alert.secret), **more, "rules": (rule,)})
    except ConfigError as error:
        return None, [str(error)]


def _at(site: str, found: Filter) -> Filter:
    """Return a filter for the events of one site, if one is named."""
    if not site:
        return found
    return lambda subject: subject.event.site == site and found(subject)


def _try(client: redis.Redis, rules: Rules) -> None:
    """Send a test event to the outputs of these rules. Raises NotTaken, ConfigError."""
    event = Event(
        id="trawl/test@0",
        position=str(Position(0, 0)),
        type="test",
        row="post",
        site="trawl",
        item="test",
        version=0,
        stored_at=datetime.now(UTC),
        title="Test of an alert",
        text="This is a test message of Trawl. Nothing is wrong.",
        author="trawl",
        rules=list(rules.filters),
    )
    for output, options in rules.outputs.items():
        for _, answer in options.deliver(Delivery(output, client, event.at), [event]).refused:
            raise NotTaken(answer)
