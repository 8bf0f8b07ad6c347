"""Rules of `trawl.toml`: filters of events, and the outputs that get them (docs/events.md has all keys)."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args
from urllib.parse import urlencode

import pydantic
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from forum_reader.definition.load import message_of
from forums.state.keys import ForumFleetKeys
from forums.storage.read.event_reader import Event
from redis_components.errors import ConfigError, did_you_mean
from redis_components.politeness.quiet_hours import parse_quiet_hours, quiet_now
from redis_components.server.fleet_file import FILE, declared, faulty
from redis_components.server.names import is_name
from redis_components.server.variables import project_dir, variable

from .expression import Filter, JudgingTime, Subject, Undecided, is_old, parse

if TYPE_CHECKING:
    import redis

    from forums.storage.write.event_log import Position

    from .outputs import Output

_FROM_ENVIRONMENT = re.compile(r"\$\{(\w+)\}")
_MAIL = re.compile(r"mailto:(?P<to>[^\s/@?]{1,64}@[^\s/@?]{1,255})(?:\?smtp=(?P<smtp>[\w.\[\]:-]{1,255}))?")


def _with_zone(moment: datetime) -> datetime:
    """Return a time of UTC where no zone is written."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


class _Table(BaseModel):
    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)


class _Rule(_Table):
    match: str


class OutputOptions(_Table):
    """Keys of every output. Each subclass is a kind of output, and nothing else lists the kinds: the check of `trawl.toml`, the
    publisher, `trawl alert` and the reference find them by `kinds()`.
    """

    targets: ClassVar[Mapping[str, str]] = {}
    """Beginnings of addresses that `trawl alert --to` takes for this kind, each with an example."""
    takes_everything: ClassVar[bool] = True
    """Without rules it gets every event; False: none."""

    kind: str = Field(description="the kind of output")
    rules: tuple[str, ...] = Field((), description="names of rules of which one has to match; left out: every event")
    kinds: tuple[Literal["post", "comment", "crawler", "gap", "forum", "breaker", "fleet"], ...] = Field(
        ("post", "comment"), description="what the events are about"
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

    def output(self, name: str, client: redis.Redis, end: Position) -> Output:
        """Build the output. `end` is the position after all events."""
        raise NotImplementedError

    @classmethod
    def of_address(cls, address: str, secret: str) -> dict[str, Any]:
        """Return the keys for an address of `targets`; `secret` is a random one. Raises ConfigError."""
        raise NotImplementedError


class StreamOptions(OutputOptions):
    """A Redis stream, for consumer groups."""

    kind: Literal["stream"]
    max_length: int = Field(10_000, ge=100, le=10_000_000, description="entries; a full stream waits for its slowest group")

    def output(self, name: str, client: redis.Redis, end: Position) -> Output:
        """Build the output."""
        from .queues import StreamOutput

        return StreamOutput(client, ForumFleetKeys().event_stream(name), self.max_length, end)


class WebhookOptions(OutputOptions):
    """A URL that events are posted to."""

    targets = {"https://": "https://example.org/hook", "http://": "https://example.org/hook"}

    kind: Literal["webhook"]
    url: Annotated[str, pydantic.StringConstraints(pattern=r"^https?://[^\s/@]+(/\S*)?$")] = Field(description="address")
    secret: str = Field(description="`${NAME}` of the environment, 16 characters or more; it signs each request")
    batch: int = Field(100, ge=1, le=1000, description="events in one request, at most")
    timeout_s: float = Field(10.0, gt=0, le=15, description="time for an answer")  # so that a round ends before its task's limit
    allow_private: bool = Field(False, description="its name may resolve to an address that is not public")

    def secrets(self) -> Mapping[str, int]:
        """Return the key of the secret."""
        return {"secret": 16}

    def output(self, name: str, client: redis.Redis, end: Position) -> Output:  # noqa: ARG002 - the form of all kinds
        """Build the output."""
        from .outputs import WebhookOutput

        return WebhookOutput(name, self)

    @classmethod
    def of_address(cls, address: str, secret: str) -> dict[str, Any]:
        """Return the keys for a URL."""
        return {"kind": "webhook", "url": address, "secret": secret}


class KafkaOptions(OutputOptions):
    """A topic of Kafka."""

    kind: Literal["kafka"]
    servers: str = Field(min_length=1, description="`host:port`, separated by commas")
    topic: Annotated[str, pydantic.StringConstraints(pattern=r"^[A-Za-z0-9._-]+$", max_length=249)] = Field(
        description="its name"
    )
    tls: bool = Field(False, description="TLS with the machine's certificates")
    user: str = Field("", description="left out: no login")
    password: str = Field("", description="`${NAME}` of the environment")
    sasl: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field("PLAIN", description="mechanism of the login")
    idempotent: bool = Field(True, description="`false`: for a broker without idempotent producers")

    def secrets(self) -> Mapping[str, int]:
        """Return the key of the password, if there is a login."""
        return {"password": 1} if self.user else {}

    def output(self, name: str, client: redis.Redis, end: Position) -> Output:  # noqa: ARG002 - the form of all kinds
        """Build the output."""
        from .queues import KafkaOutput

        return KafkaOutput(name, self)


class NatsOptions(OutputOptions):
    """A subject of a NATS JetStream stream."""

    kind: Literal["nats"]
    url: str = Field(description="`${NAME}` of the environment: `nats://user:password@host:4222`, `tls://…`")
    subject: Annotated[str, pydantic.StringConstraints(pattern=r"^[^\s*>]+$")] = Field(description="a stream must keep it")

    def secrets(self) -> Mapping[str, int]:
        """Return the key of the URL, which has a password."""
        return {"url": 1}

    def output(self, name: str, client: redis.Redis, end: Position) -> Output:  # noqa: ARG002 - the form of all kinds
        """Build the output."""
        from .queues import NatsOutput

        return NatsOutput(name, self)


class FileOptions(OutputOptions):
    """A file with one JSON object in each line."""

    kind: Literal["file"]
    path: str = Field(min_length=1, description="the file; relative paths begin at the project")

    def output(self, name: str, client: redis.Redis, end: Position) -> Output:  # noqa: ARG002 - the form of all kinds
        """Build the output."""
        from .outputs import FileOutput

        return FileOutput(project_dir() / Path(self.path).expanduser(), end)


class StdoutOptions(OutputOptions):
    """The standard output of the worker that publishes, as `trawl up` and `docker logs` show it."""

    targets = {"stdout": "stdout"}

    kind: Literal["stdout"]

    def output(self, name: str, client: redis.Redis, end: Position) -> Output:  # noqa: ARG002 - the form of all kinds
        """Build the output."""
        from .messages import StdoutOutput

        return StdoutOutput()

    @classmethod
    def of_address(cls, address: str, secret: str) -> dict[str, Any]:  # noqa: ARG003 - the form of all kinds
        """Return the keys for `stdout`."""
        if address != "stdout":
            raise ConfigError(f"{address!r:.100} is not an address: write stdout")
        return {"kind": "stdout"}


class NotifyOptions(OutputOptions):
    """A recipient of messages, by its Apprise URL: of events that match its rules, and of alarms."""

    targets = {
        **dict.fromkeys(("mailto:", "mailtos:"), "mailto:you@example.org"),
        **dict.fromkeys(("ntfy://", "ntfys://"), "ntfy://TOPIC"),
    }
    takes_everything = False

    kind: Literal["notify"]
    url: str = Field(description="`${NAME}` of the environment: an address of Apprise, as `mailto://…`, `slack://…`")
    alarms: bool = Field(False, description="also the problems of `trawl status`")
    digest_minutes: int = Field(0, ge=0, le=1440, description="time that an event waits for others, to be in one message")
    quiet_hours: str = Field("", description='nothing is sent then, as `"22:00-07:00"`; it is sent afterwards')
    time_zone: str = Field("UTC", description="of the quiet hours, as `Europe/Berlin`")

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

    def secrets(self) -> Mapping[str, int]:
        """Return the key of the URL, which has a password or token."""
        return {"url": 1}

    def output(self, name: str, client: redis.Redis, end: Position) -> Output:  # noqa: ARG002 - the form of all kinds
        """Build the output."""
        from .messages import NotifyOutput

        return NotifyOutput(name, self)

    @classmethod
    def of_address(cls, address: str, secret: str) -> dict[str, Any]:  # noqa: ARG003 - the form of all kinds
        """Return the keys for an address of Apprise, or for `mailto:you@example.org`, which the mail server of this machine
        takes, or the server of `?smtp=HOST:PORT`.
        """
        if found := _MAIL.fullmatch(address):
            host, sender = found["smtp"] or "localhost", f"trawl@{socket.getfqdn()}"
            address = f"mailto://{host}/?{urlencode({'to': found['to'], 'from': sender})}"
        return {"kind": "notify", "url": address}


def kinds() -> dict[str, type[OutputOptions]]:
    """Return the kinds of outputs, in the order of their classes."""
    return {get_args(one.model_fields["kind"].annotation)[0]: one for one in OutputOptions.__subclasses__()}


class _File(_Table):
    rules: dict[str, _Rule] = {}
    outputs: dict[str, dict[str, Any]] = {}


class Rules:
    """Filters and outputs by name, of `trawl.toml` or made at run time; `since`: when the latter were made."""

    def __init__(
        self, filters: dict[str, Filter], outputs: dict[str, OutputOptions], since: Mapping[str, datetime] | None = None
    ) -> None:
        self.filters = filters
        self.outputs = outputs
        self.since = since or {}

    def with_others(self, other: Rules) -> Rules:
        """Return these rules with others, whose names differ."""
        return Rules(self.filters | other.filters, self.outputs | other.outputs, {**self.since, **other.since})

    def judged(self, output: OutputOptions, events: list[Event], judging: JudgingTime) -> tuple[int, list[Event]]:
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

    def _fits(self, output: OutputOptions, event: Event, judging: JudgingTime) -> bool:
        event.rules, event.undecided = [], []
        if event.row not in output.kinds or (output.written_since and is_old(event, output.written_since)):
            return False
        subject = Subject(event, judging)
        for name in output.rules:
            try:
                if self.filters[name].matches(subject):
                    event.rules.append(name)
            except Undecided:
                event.undecided.append(name)
                judging.undecided[name, event.site] += 1
        return bool(event.rules or event.undecided or (output.takes_everything and not output.rules))


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
        raise faulty(path, (_line(one, (), _Rule) for one in error.errors())) from None
    filters: dict[str, Filter] = {}
    outputs: dict[str, OutputOptions] = {}
    faults = []
    for rule, given in found.rules.items():
        try:
            filters[rule] = parse(given.match)
        except ConfigError as error:
            faults.append(f"rules.{rule}.match: {error}")
    for output, keys in found.outputs.items():
        place = ("outputs", output)
        if not is_name(output):
            faults.append(f"outputs.{output}: an output's name has letters, digits, '.', '_', '-'")
        options, wrong = options_of(keys, place)
        faults += wrong
        if options is None:
            continue
        faults += [
            f"outputs.{output}.rules: there is no rule {rule!r}{did_you_mean(rule, list(found.rules))}"
            for rule in options.rules
            if rule not in found.rules
        ]
        try:
            outputs[output] = _with_secrets(options, f"outputs.{output}")
        except ConfigError as error:
            faults.append(str(error))
    if faults:
        raise faulty(path, faults)
    return Rules(filters, outputs)


def options_of(keys: Mapping[str, Any], place: tuple[str, ...] = ()) -> tuple[OutputOptions | None, list[str]]:
    """Return the options of an output, or None and its faults."""
    known, named = kinds(), str(keys.get("kind"))
    if (kind := known.get(named)) is None:
        listed = ", ".join(f'"{one}"' for one in known)
        return None, [f"{'.'.join((*place, 'kind'))}: must be one of {listed}{did_you_mean(named, list(known))}"]
    try:
        return kind.model_validate(keys), []
    except ValidationError as error:
        return None, [_line(one, place, kind) for one in error.errors()]


def _with_secrets(options: OutputOptions, place: str) -> OutputOptions:
    """Return the options with the values of the environment in place of `${NAME}`. Raises ConfigError."""
    found = {key: _secret(getattr(options, key), f"{place}.{key}", least) for key, least in options.secrets().items()}
    return options.model_copy(update=found)


def _secret(written: str, place: str, least: int) -> str:
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


def _line(found: ErrorDetails, place: tuple[str, ...], model: type[BaseModel]) -> str:
    loc = (*place, *found["loc"])
    key = ".".join(map(str, loc)) or "the file"
    if found["type"] == "extra_forbidden":
        return f"{key}: there is no such key{did_you_mean(str(loc[-1]), list(model.model_fields))}"
    if found["type"] == "missing":
        return f"{key} is missing"
    if loc[-1:] == ("url",):
        return f"{key}: must be an address without a user's name, as https://example.org/events"
    value: Any = found["input"]
    return f"{key}: {message_of(found, loc, None if loc[-1:] == ('secret',) else value)}"
