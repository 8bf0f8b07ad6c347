"""Rules of `trawl.toml`: filters of events, and the outputs that get them (docs/events.md has all keys)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import ErrorDetails

from forum_reader.definition.load import message_of
from forums.storage.read.event_reader import Event
from redis_components.errors import ConfigError, did_you_mean
from redis_components.server.fleet_file import FILE, declared, faulty
from redis_components.server.names import is_name
from redis_components.server.variables import variable

from . import messages  # noqa: F401 - its kinds of outputs
from .expression import Filter, JudgingTime, Subject, Undecided, is_old, parse
from .outputs import OutputOptions, Table

_FROM_ENVIRONMENT = re.compile(r"\$\{(\w+)\}")


class _Rule(Table):
    match: str


def kinds() -> dict[str, type[OutputOptions]]:
    """Return the kinds of outputs, in the order of their classes."""
    return {get_args(one.model_fields["kind"].annotation)[0]: one for one in OutputOptions.__subclasses__()}


class _File(Table):
    rules: dict[str, _Rule] = Field({})
    outputs: dict[str, dict[str, Any]] = Field({})


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
                if self.filters[name](subject):
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
    return f"{key}: {message_of(found, loc)}"
