"""Declares and reads environment variables: a class for each group that is read together.

    class Logs(Variables):
        log_files: Whole = declare(3, "rotated log files of each slot", rule="must be from 1 to 100", ge=1, le=100)

    Logs.read().log_files        TRAWL_LOG_FILES, else 3; ConfigError "TRAWL_LOG_FILES='0': must be from 1 to 100"

A group is validated as a whole when it is read, and only then: a wrong value stops the readers of its group, nothing else.
msgspec validates here: every command and process reads variables, and pydantic, which reads site files, takes 0.1 s to load.
Parsers of services, hosts and names are below, and what is known of the project in this folder.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from configparser import ConfigParser
from configparser import Error as ConfigParserError
from contextlib import suppress
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Self, Union, get_args, get_origin, get_type_hints

import msgspec

from redis_components import defaults
from redis_components.embedded import project_dir
from redis_components.errors import ConfigError
from redis_components.server.names import MOST_SLOTS, service_name
from redis_components.server.printable import masked
from redis_components.server.variables import variable

PREFIX = "TRAWL_"
_ON = {"1", "true", "t", "yes", "y", "on"}
_OFF = {"", "0", "false", "f", "no", "n", "off"}
_KNOWN: dict[type, dict[str, Any]] = {}  # annotations of a group, which take longer to evaluate than the group to read


@dataclass(frozen=True, kw_only=True)
class Declared:
    """One variable, with the arguments of `declare`."""

    default: Any
    meaning: str
    rule: str
    shown: str
    derived: Callable[[Mapping[str, Any]], Any] | None
    bounds: Mapping[str, Any]

    def unset(self, before: Mapping[str, Any]) -> Any:
        """Return the value for a variable that is not set. `before`: values of the fields before it."""
        return self.derived(before) if self.derived else self.default


def declare(
    default: Any = None,
    meaning: str = "",
    *,
    rule: str = "",
    shown: str = "",
    derived: Callable[[Mapping[str, Any]], Any] | None = None,
    **bounds: Any,
) -> Any:
    """Declare a variable. `meaning` is Markdown of docs/reference/settings.md, `shown` the default there.

    `rule` ends the message "NAME='value': ". In place of a `default`, `derived` computes one from the fields before it.
    `bounds`: of `msgspec.Meta`.
    """
    return Declared(default=default, meaning=meaning, rule=rule, shown=shown, derived=derived, bounds=bounds)


class WrongValues(ConfigError):
    """Values of a group that cannot be; the message is about the first one.

    `faults`: by the name of the field one line with variable, value (unless it is secret) and what it must be.
    """

    def __init__(self, faults: Mapping[str, str]) -> None:
        super().__init__(next(iter(faults.values())))
        self.faults = faults


class Variables:
    """Base of a group; an instance has the values as attributes."""

    @classmethod
    def declared(cls) -> dict[str, Declared]:
        """Return the declarations, by the name of the field, in order."""
        return {name: one for name, one in vars(cls).items() if isinstance(one, Declared)}

    @classmethod
    def read(cls) -> Self:
        """Return the current values. Raises WrongValues with all wrong values, ConfigError for a file that cannot be read."""
        values: dict[str, Any] = {}
        faults: dict[str, str] = {}
        for name, one in cls.declared().items():
            text = variable(variable_name(name))
            try:
                values[name] = one.unset(values) if text is None else _value(_annotations(cls)[name], text, one.bounds)
            except ConfigError as error:  # of a parser, which has its own sentence
                faults[name] = str(error)
            except ValueError:
                shown = "" if is_secret(cls, name) else f"={text!r:.200}"
                faults[name] = f"{variable_name(name)}{shown}: {one.rule}"
        if faults:
            raise WrongValues(faults)
        made = cls()
        vars(made).update(values)
        return made


def variable_name(name: str) -> str:
    """Return `TRAWL_LOG_FILES` for `log_files`."""
    return f"{PREFIX}{name.upper()}"


def is_secret(group: type[Variables], name: str) -> bool:
    """Return True if the variable's value is never printed."""
    return "Secret" in type_words(group, name)


def type_words(group: type[Variables], name: str) -> str:
    """Return the type of a field, as Python writes it."""
    return str(_parts(_annotations(group)[name])[0])


def _annotations(group: type[Variables]) -> dict[str, Any]:
    if group not in _KNOWN:  # without the class's own names: `data_dir` is a function in an annotation, and a field
        _KNOWN[group] = get_type_hints(group, vars(sys.modules[group.__module__]), {}, include_extras=True)
    return _KNOWN[group]


def _parts(annotation: Any) -> tuple[Any, tuple[Callable[[str], Any], ...]]:
    """Split an annotation into its type and the parsers that are applied to a text first."""
    if get_origin(annotation) is not Annotated:
        return annotation, ()
    kind, *parsers = get_args(annotation)
    return kind, tuple(parsers)


def _value(annotation: Any, text: str, bounds: Mapping[str, Any]) -> Any:
    """Parse and validate a text. Raises ValueError, or the ConfigError of a parser."""
    kind, parsers = _parts(annotation)
    value: Any = text
    for parse in parsers:
        value = parse(value) if isinstance(value, str) else value
    if value is None:  # by a parser
        return None
    if get_origin(kind) in (Union, UnionType):
        kind = Union[tuple(one for one in get_args(kind) if one is not NoneType)]  # noqa: UP007 - of a tuple
    bounded = Annotated[kind, msgspec.Meta(**bounds)] if bounds else kind
    return msgspec.convert(value, bounded, dec_hook=lambda made, given: made(given))


# types


def parsed_by(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Mark a callable as the parser of a field, which raises ConfigError. For readers: any callable in an annotation parses."""
    return parse


def _number(kind: Callable[[str], Any], form: str) -> Callable[[str], Any]:
    """Return a parser of numbers in decimal digits; Python would also accept 1_000 and 1e3."""

    def parse(text: str) -> Any:
        if not re.fullmatch(form, text, re.ASCII):
            raise ValueError(text)
        return kind(text)

    return parse


def _switch(text: str) -> bool:
    word = text.strip().lower()
    if word not in _ON | _OFF:
        raise ValueError(text)
    return word in _ON


Whole = Annotated[int, _number(int, r"\d{1,18}")]
Number = Annotated[float, _number(float, r"\d{1,18}(\.\d{1,18})?")]
Switch = Annotated[bool, _switch]
EmptyIsNone = parsed_by(lambda text: text or None)
"""An empty text is none: compose files pass `${NAME:-}` on."""


class Secret:
    """`str` and `repr` show a URL without its password, and of any other text nothing. `get_secret_value()` returns the text."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def get_secret_value(self) -> str:
        """Return the text itself."""
        return self._text

    def __str__(self) -> str:
        return masked(self._text) if "://" in self._text else "***" if self._text else ""

    def __repr__(self) -> str:
        return f"Secret({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


DEFAULT_FLEET = defaults.FLEET
_SERVICE = re.compile(r"(.+)=(\d{1,9})", re.ASCII)
_HOST = re.compile(r"\[[0-9a-f:.]+\]|[\w.-]+", re.ASCII)


def parse_fleet(text: str) -> dict[str, int]:
    """Parse `forum_list=1,forum_detail=2` to `{"forum_list": 1, "forum_detail": 2}`. Raises ConfigError."""
    fleet: dict[str, int] = {}
    for part in _comma_parts(text):
        if not (m := _SERVICE.fullmatch(part)):
            raise ConfigError(f"TRAWL_FLEET: {part!r} is not of the form spider=number; an example: {DEFAULT_FLEET}")
        try:
            service_name(m[1])
            check_size(m[1], int(m[2]))
        except ConfigError as error:
            raise ConfigError(f"TRAWL_FLEET: {error}") from None
        if m[1] in fleet:
            raise ConfigError(f"TRAWL_FLEET: {m[1]} is named twice; name each spider once")
        fleet[m[1]] = int(m[2])
    if not fleet:
        raise ConfigError(f"TRAWL_FLEET is empty; name at least one service, such as {DEFAULT_FLEET}")
    return fleet


def check_size(service: str, size: object) -> int:
    """Return `size` if it is a valid size of a service. Raises ConfigError."""
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= MOST_SLOTS:
        raise ConfigError(f"{service}={size!r}: the number of crawlers is a whole number from 0 to {MOST_SLOTS}")
    return size


def parse_hosts(text: str) -> frozenset[str]:
    """Parse `exporter, 10.0.0.7`: hosts without ports, in lower case. Raises ConfigError."""
    names = _comma_parts(text.lower())
    if wrong := [name for name in names if not _HOST.fullmatch(name)]:
        raise ConfigError(
            f"TRAWL_EXPORTER_HOSTS: {wrong[0]!r} is not a host name: write names without ports, such as exporter,10.0.0.7"
        )
    return frozenset(names)


def parse_login(text: str) -> tuple[str, str] | None:
    """Parse `user:password`; None for an empty text. Raises ConfigError, which does not show them."""
    if not text:
        return None
    user, _, password = text.partition(":")
    if not (user and password) or "," in text:  # Flower reads a comma as the end of this pair
        raise ConfigError("TRAWL_FLOWER_AUTH is not of the form user:password (without commas): correct it, or unset it")
    return user, password


def parse_names(text: str) -> tuple[str, ...]:
    """Parse `a, b` to `("a", "b")`."""
    return tuple(_comma_parts(text))


def _comma_parts(text: str) -> list[str]:
    return [part for part in (part.strip() for part in text.split(",")) if part]


# the project


def settings_module(environment: Mapping[str, str] = os.environ) -> str:
    """Return the settings module of the Scrapy project that this node's crawlers run."""
    return environment.get("SCRAPY_SETTINGS_MODULE") or _named_in_scrapy_cfg()


def has_own_spiders() -> bool:
    """Return True if the project of this folder does not have the application's spiders: its settings take over nothing of
    `workers.settings`. Its spiders are not loaded for that, as each command asks.
    """
    module = settings_module()
    file = project_dir().joinpath(*module.split(".")).with_suffix(".py")
    try:
        text = file.read_bytes()
    except OSError:
        return False
    return module != "workers.settings" and b"workers.settings" not in text and b"forums." not in text


def _named_in_scrapy_cfg() -> str:
    config = ConfigParser()
    with suppress(OSError, ConfigParserError):  # the crawler that uses the file reports its errors
        config.read(project_dir() / "scrapy.cfg")
    return config.get("settings", os.environ.get("SCRAPY_PROJECT", "default"), fallback="workers.settings")
