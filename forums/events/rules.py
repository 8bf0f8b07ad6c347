"""Rules of `trawl.toml`: filters of events, and the outputs that get them.

[rules.gpu]
match = "显卡 or rtx*"

[outputs.shop]
kind = "webhook"
url = "https://shop.example.org/posts"
secret = "${SHOP_SECRET}"
rules = ["gpu"]
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import pydantic
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from forum_reader.definition.load import message_of
from forums.storage.read.event_reader import Event
from redis_components.errors import ConfigError, did_you_mean
from redis_components.politeness.quiet_hours import parse_quiet_hours, quiet_now
from redis_components.server.fleet_file import FILE, declared, faulty
from redis_components.server.names import is_name
from redis_components.server.variables import variable

from .expression import Filter, JudgingTime, Subject, Undecided, parse

_FROM_ENVIRONMENT = re.compile(r"\$\{(\w+)\}")
_KINDS = ("stream", "webhook", "file", "notify", "kafka", "nats")


class _Table(BaseModel):
    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)


class _Rule(_Table):
    match: str


class _Output(_Table):
    rules: tuple[str, ...] = ()  # none: every event
    kinds: tuple[Literal["post", "comment", "crawler", "gap", "forum", "breaker", "fleet"], ...] = ("post", "comment")
    begin: Literal["now", "oldest"] = "now"  # of a new output: its first event


class StreamOptions(_Output):
    """A Redis stream, for consumer groups."""

    kind: Literal["stream"]
    max_length: int = Field(10_000, ge=100, le=10_000_000)


class WebhookOptions(_Output):
    """A URL that events are posted to."""

    kind: Literal["webhook"]
    url: Annotated[str, pydantic.StringConstraints(pattern=r"^https?://[^\s/@]+(/\S*)?$")]
    secret: str
    batch: int = Field(100, ge=1, le=1000)
    timeout_s: float = Field(10.0, gt=0, le=15)  # so that a round ends before its task's time limit
    allow_private: bool = False


class KafkaOptions(_Output):
    """A topic of Kafka."""

    kind: Literal["kafka"]
    servers: str = Field(min_length=1)  # host:port, separated by commas
    topic: Annotated[str, pydantic.StringConstraints(pattern=r"^[A-Za-z0-9._-]+$", max_length=249)]
    tls: bool = False
    user: str = ""
    password: str = ""
    sasl: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "PLAIN"
    idempotent: bool = True  # False: for a broker without idempotent producers


class NatsOptions(_Output):
    """A subject of a NATS JetStream stream."""

    kind: Literal["nats"]
    url: str
    subject: Annotated[str, pydantic.StringConstraints(pattern=r"^[^\s*>]+$")]


class FileOptions(_Output):
    """A file with one JSON object in each line."""

    kind: Literal["file"]
    path: str = Field(min_length=1)


class NotifyOptions(_Output):
    """A recipient of messages, by its Apprise URL: of events that match its rules, and of alarms."""

    kind: Literal["notify"]
    url: str
    alarms: bool = False
    digest_minutes: int = Field(0, ge=0, le=1440)  # maximum delay of an event, to send several in one message
    quiet_hours: str = ""  # neither events nor alarms are sent then; they are sent afterwards
    time_zone: str = "UTC"  # of quiet_hours

    @pydantic.model_validator(mode="after")
    def _can_be_read(self) -> NotifyOptions:
        try:
            parse_quiet_hours(self.quiet_hours or "00:00-01:00", self.time_zone)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return self

    def quiet_for_s(self, now: float) -> float | None:
        """Return the remaining seconds of its quiet hours at `now` (epoch s); None outside of them."""
        return quiet_now(parse_quiet_hours(self.quiet_hours, self.time_zone), now) if self.quiet_hours else None


AnyOptions = StreamOptions | WebhookOptions | FileOptions | NotifyOptions | KafkaOptions | NatsOptions
Options = Annotated[AnyOptions, Field(discriminator="kind")]


class _File(_Table):
    rules: dict[str, _Rule] = {}
    outputs: dict[str, Options] = {}


_KEYS = {"rules": [*_Rule.model_fields], "outputs": [key for one in get_args(AnyOptions) for key in one.model_fields]}


class Rules:
    """The parsed rules file: filters and outputs by name."""

    def __init__(self, filters: dict[str, Filter], outputs: dict[str, AnyOptions]) -> None:
        self.filters = filters
        self.outputs = outputs

    def judged(self, output: _Output, events: list[Event], judging: JudgingTime) -> tuple[int, list[Event]]:
        """Return how many events were judged before the time was over, at least one, and the ones that match a rule of the
        output, each with the names of its rules. An event that a rule cannot judge in time is included, with that rule's name in
        `undecided`, since a superfluous event is better than a missing one.
        """
        wanted: list[Event] = []
        for looked_at, event in enumerate(events):
            if looked_at and judging.over:
                return looked_at, wanted
            if self._fits(output, event, judging):
                wanted.append(event)
        return len(events), wanted

    def _fits(self, output: _Output, event: Event, judging: JudgingTime) -> bool:
        event.rules, event.undecided = [], []
        if event.row not in output.kinds:
            return False
        subject = Subject(event, judging)
        for name in output.rules:
            try:
                if self.filters[name].matches(subject):
                    event.rules.append(name)
            except Undecided:
                event.undecided.append(name)
                judging.undecided[name, event.site] += 1
        return bool(event.rules or event.undecided or not (output.rules or isinstance(output, NotifyOptions)))


_known: tuple[dict[str, Any], Rules] | None = None


def load() -> Rules | None:
    """Load the rules and outputs of `trawl.toml`; None without such tables. Raises ConfigError with the error."""
    global _known
    found = declared("rules", "outputs")
    if found is None:
        return None
    if _known is None or _known[0] != found.tables:
        _known = found.tables, rules_of(found.tables, found.file)
    return _known[1]


def rules_of(table: Mapping[str, Any], path: Path = Path(FILE)) -> Rules:
    """Parse the tables of rules and outputs. Raises ConfigError."""
    try:
        found = _File.model_validate(table)
    except ValidationError as error:
        raise faulty(path, map(_line, error.errors())) from None
    filters: dict[str, Filter] = {}
    outputs: dict[str, AnyOptions] = {}
    faults = []
    for rule, given in found.rules.items():
        try:
            filters[rule] = parse(given.match)
        except ConfigError as error:
            faults.append(f"rules.{rule}.match: {error}")
    for output, options in found.outputs.items():
        place = f"outputs.{output}"
        if not is_name(output):
            faults.append(f"{place}: an output's name has letters, digits, '.', '_', '-'")
        faults += [
            f"{place}.rules: there is no rule {rule!r}{did_you_mean(rule, list(found.rules))}"
            for rule in options.rules
            if rule not in found.rules
        ]
        try:
            outputs[output] = _with_secrets(options, place)
        except ConfigError as error:
            faults.append(str(error))
    if faults:
        raise faulty(path, faults)
    return Rules(filters, outputs)


def _with_secrets(options: AnyOptions, place: str) -> AnyOptions:
    if isinstance(options, WebhookOptions):
        return options.model_copy(update={"secret": _secret(options.secret, f"{place}.secret", least=16)})
    if isinstance(options, KafkaOptions) and options.user:
        return options.model_copy(update={"password": _secret(options.password, f"{place}.password", least=1)})
    if isinstance(options, NotifyOptions | NatsOptions):  # the URL has a password or token
        return options.model_copy(update={"url": _secret(options.url, f"{place}.url", least=1)})
    return options


def _secret(written: str, place: str, *, least: int) -> str:
    """Return the value of the environment variable that is written as `${NAME}`."""
    named = _FROM_ENVIRONMENT.fullmatch(written)
    key = place.rpartition(".")[2]
    if named is None:
        raise ConfigError(
            f'{place}: a secret must not stand in the file: write {key} = "${{NAME}}" and set NAME in the environment'
        )
    value = variable(named[1])
    if not value or len(value) < least:
        raise ConfigError(f"{place}: {named[1]} is not set in the environment, or has fewer than {least} characters")
    return value


def _line(found: ErrorDetails) -> str:
    loc = tuple(part for place, part in enumerate(found["loc"]) if place != 2 or part not in _KINDS)
    key = ".".join(map(str, loc)) or "the file"
    if found["type"] == "extra_forbidden":
        return f"{key}: there is no such key{did_you_mean(str(loc[-1]), _KEYS.get(str(loc[0]), ()))}"
    if found["type"] == "missing":
        return f"{key} is missing"
    if found["type"].startswith("union_tag"):
        return f'{key}.kind: must be "stream", "webhook", "file", "notify", "kafka" or "nats"'
    if loc[-1:] == ("url",):
        return f"{key}: must be an address without a user's name, as https://example.org/events"
    value: Any = found["input"]
    return f"{key}: {message_of(found, loc, None if loc[-1:] == ('secret',) else value)}"
