"""Parses values written by other processes and by people. Bad values of processes are skipped; the rest is still read.

Each reader of the fleet's records uses these functions. Skipped values are found by `workers.state.quarantine`, which checks
by the same functions: `trawl status` shows them, `trawl doctor` the command that removes each.

`toml_table` reads each file in TOML that people write. `JsonRecord` gives a dataclass its line of JSON; `RecordStore` reads
the fields of a hash, and replaces one that was read there: of several processes that read the same, one writes.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar

import msgspec
import redis
from redis.exceptions import NoPermissionError, OutOfMemoryError, ReadOnlyError

from redis_components.errors import ConfigError

from .scripts import script
from .signing import fault, seal, signing_is_on


def as_text(raw: bytes | str) -> str:
    """Return a reply as text, also from a client with `decode_responses=True`; bytes that are not UTF-8 do not make it fail."""
    return raw.decode(errors="replace") if isinstance(raw, bytes) else raw


def as_bytes(raw: bytes | str) -> bytes:
    """Return a reply as its bytes in Redis, also from a client with `decode_responses=True`."""
    return raw.encode() if isinstance(raw, str) else raw


def server_time(client: redis.Redis) -> float:
    """Return Redis's time as epoch seconds, the one clock of the fleet. Raises `redis.RedisError`."""
    seconds, micros = client.time()
    return float(seconds + micros / 1e6)


MOST_BYTES = 65_536
"""Of one record: the largest that Trawl writes are a tenth of it."""
MOST_ENTRIES = 10_000
"""Of a stream of records."""
LATEST = 32_503_680_000.0
"""Epoch s, the year 3000: later times cannot be shown, and are not valid."""

Epoch = Annotated[float, msgspec.Meta(ge=0, le=LATEST)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Size = Annotated[int, msgspec.Meta(ge=0, le=1000)]
"""Crawlers of one service: more is a typing error."""
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e15)]

T = TypeVar("T")


class WrongValue(ValueError):
    """A value that Trawl does not write. The message is a predicate: `is not a number from 0 to 1`."""


def decoded(raw: bytes | str, kind: type[T], *, most: int = MOST_BYTES) -> T:
    """Return the record of that kind in a line of JSON. Raises ValueError for everything else, however large or deep it is."""
    if len(raw) > most:
        raise ValueError(f"{len(raw):,} bytes are more than a record has ({most:,})")
    try:
        return msgspec.json.decode(raw, type=kind)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def encoded(record: Any, what: str, *, most: int = MOST_BYTES, cut: bool = False) -> bytes:
    """Return the line of JSON from which `decoded` reads the record. Where that would be refused: raise ConfigError that names
    `what` it is and its largest field, or with `cut` shorten its texts and lists, for what processes report of themselves.
    """
    line = msgspec.json.encode(record)
    for longest in (2_000, 300, 100) if cut and len(line) > most else ():
        line = msgspec.json.encode(_shortened(msgspec.to_builtins(record), longest))
        if len(line) <= most:
            return line
    if len(line) > most:
        raise ConfigError(f"{what} is too large: it has {len(line):,} bytes, and may have {most:,}: make it shorter")
    return line


def _shortened(value: Any, longest: int) -> Any:
    if isinstance(value, dict):
        return {name: _shortened(one, longest) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_shortened(one, longest) for one in value[:longest]]
    return value[:longest] if isinstance(value, str) else value


MOST_DEPTH = 20
"""Tables and lists within each other. No file of Trawl has more than six; so functions over them may recurse."""
_INTEGERS = range(-(2**63), 2**63)  # TOML's own; Python reads longer ones, and refuses to show them


def toml_table(text: str) -> dict[str, Any]:
    """Return the table of a TOML text. Raises ValueError with the fault and, where it is known, its line."""
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise ValueError(f"nested more than {MOST_DEPTH} deep") from None
    level: list[Any] = [table]
    for _ in range(MOST_DEPTH):
        level = [inner for outer in level for inner in (outer.values() if isinstance(outer, dict) else outer)]
        if any(isinstance(value, int) and value not in _INTEGERS for value in level):
            raise ValueError("a whole number of more than 64 bits")
        level = [value for value in level if isinstance(value, dict | list)]
        if not level:
            return table
    raise ValueError(f"nested more than {MOST_DEPTH} deep")


def whole(raw: bytes | str, least: int = 0, most: int = 2**53) -> int:
    """Return a whole number in ASCII digits within these bounds. Raises WrongValue."""
    text = as_text(raw)
    if not re.fullmatch(r"\d{1,16}", text, re.ASCII) or not least <= int(text) <= most:
        raise WrongValue(f"is not a whole number from {least} to {most}")
    return int(text)


def number(raw: bytes | str, least: float = 0.0, most: float = LATEST) -> float:
    """Return a number within these bounds. Raises WrongValue."""
    text = as_text(raw)
    try:
        value = float(text) if len(text) < 64 else math.nan
    except ValueError:
        value = math.nan
    if not least <= value <= most:  # also of NaN
        raise WrongValue(f"is not a number from {least:g} to {most:g}")
    return value


def hash_at(client: redis.Redis, key: str) -> dict[bytes, bytes]:
    """Return all of a hash that is bounded by the fleet's size; empty where the key has another type."""
    try:
        found = client.hgetall(key)
    except redis.ResponseError as error:
        if is_foreign(error):
            return {}
        raise
    return {as_bytes(field): as_bytes(raw) for field, raw in found.items()}


def readable(fields: Mapping[bytes, bytes], read: Callable[[str, bytes], T]) -> dict[str, T]:
    """Return the results of `read` for each field and value, by field in their order; fields with a ValueError are left out."""
    found = {}
    for field, raw in sorted(fields.items()):
        try:
            name = field.decode()
            found[name] = read(name, raw)
        except ValueError:
            continue
    return found


def is_foreign(error: BaseException) -> bool:
    """Return True if Redis refuses because of a key's content: another type, or a value that a script cannot count with.

    False for out of memory, read-only, a full disk, a missing permission: these are states of Redis itself, and pass.
    """
    if not isinstance(error, redis.ResponseError) or isinstance(error, OutOfMemoryError | ReadOnlyError | NoPermissionError):
        return False
    text = str(error)
    return "WRONGTYPE" in text or "attempt to " in text or "not an integer" in text or "not a valid float" in text


def answers_of(pipe: Any) -> list[Any]:
    """Return the replies of a pipeline without a transaction; None for a command whose key has another type."""
    answers = pipe.execute(raise_on_error=False)
    for answer in answers:
        if isinstance(answer, Exception) and not is_foreign(answer):
            raise answer
    return [None if isinstance(answer, Exception) else answer for answer in answers]


R = TypeVar("R")
SIGNATURE_BYTES = 256  # at most, with its name


class JsonRecord:
    """Base of a dataclass that is stored as one line of JSON."""

    STAMPED: ClassVar[frozenset[str]] = frozenset()
    """Fields that Redis writes itself."""
    MOST: ClassVar[int] = MOST_BYTES
    """Bytes that one may have."""
    CUT: ClassVar[bool] = False
    """True for what processes report: where it is too large its texts are shortened. What an operator gives is refused."""

    def to_json(self) -> str:
        """Return one line; the same for the same record. Raises ConfigError for one that `from_json` would refuse."""
        fields: dict[str, Any] = asdict(self)  # type: ignore[call-overload]  # it is a dataclass
        kept = {name: value for name, value in fields.items() if name not in self.STAMPED}
        return encoded(kept, type(self).__name__.lower(), most=self.MOST, cut=self.CUT).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what `to_json` wrote, here or in a newer version: fields that are not known are left out.

        Raises ValueError for anything else.
        """
        return decoded(text, cls, most=cls.MOST)

    def add_to(self, client: redis.Redis, stream: str) -> None:
        """Append it to a stream, of which about the last `MOST_ENTRIES` remain. Raises `redis.RedisError`."""
        client.xadd(stream, {type(self).__name__.lower(): self.to_json()}, maxlen=MOST_ENTRIES, approximate=True)


class RecordStore(Generic[R]):
    """The records of kind `kind` (a dataclass or a Struct) in the hash `key`. Not for two threads.

    `signed`: the purpose of the records' signatures; with signing on, a record without a valid one counts as unreadable. For
    records that determine the code and files of nodes. Methods raise `redis.RedisError` when Redis does not answer.
    """

    def __init__(self, client: redis.Redis, key: str, kind: type[R], *, signed: str = "") -> None:
        self._client = client
        self._key = key
        self._kind = kind
        self._signed = signed
        self._most = getattr(kind, "MOST", MOST_BYTES)
        self._found: dict[str, bytes] = {}

    def all(self) -> dict[str, R]:
        """Return the records by field, in their order; unreadable ones are left out."""
        self._found = {as_text(field): as_bytes(raw) for field, raw in hash_at(self._client, self._key).items()}
        read = {field: self._read(field, raw) for field, raw in sorted(self._found.items())}
        return {field: record for field, record in read.items() if record is not None}

    def get(self, field: str) -> R | None:
        """Return one record; None where there is none that this version can read."""
        self._found[field] = b""
        try:
            self._found[field] = as_bytes(self._client.hget(self._key, field) or b"")
        except redis.ResponseError as error:
            if not is_foreign(error):
                raise
        return self._read(field, self._found[field])

    def parse(self, field: str, raw: bytes) -> R:
        """Return the record in a line. Raises ValueError, also for one without its signature."""
        if self._signed:
            check_signature(self._signed, field, raw)
        return decoded(raw, self._kind, most=self._most)

    def encoded(self, field: str, record: R, *, spare: int = SIGNATURE_BYTES) -> bytes:
        """Return the line of JSON that stands for a record there. Raises ConfigError for one that is too large; `spare` bytes are
        left for what comes later.
        """
        kind = self._signed or self._kind.__name__.lower()
        raw = encoded(record, f"{kind} {field}", most=self._most - spare, cut=getattr(self._kind, "CUT", False))
        return with_signature(self._signed, field, raw) if self._signed and signing_is_on() else raw

    def put(self, field: str, record: R | None) -> bool:
        """Put the record (None: nothing) in the place of the one that was read; return False, and change nothing, if another
        process has changed it since.
        """
        value = b"" if record is None else self.encoded(field, record)
        args = {"field": field, "expected": self._found.get(field, b""), "value": value}
        written = bool(script("swap")(self._client, {"notes": self._key}, args))
        if written:
            self._found[field] = value
        return written

    def change(self, field: str, change: Callable[[R | None], R]) -> R:
        """Change a record, also when another process changes it at the same time. Raises the errors of `change`."""
        while True:
            before = self.get(field)
            after = change(before)
            if after == before or self.put(field, after):
                return after

    def _read(self, field: str, raw: bytes) -> R | None:
        try:
            return self.parse(field, raw) if raw else None
        except ValueError:
            return None


_BEFORE_SIGNATURE = b',"signature":"'


def with_signature(purpose: str, field: str, raw: bytes) -> bytes:
    """Return an object in JSON, with a signature as its last field. Raises ConfigError where there is no key."""
    return raw[:-1] + _BEFORE_SIGNATURE + seal(purpose, field, raw).encode() + b'"}'


def check_signature(purpose: str, field: str, raw: bytes) -> None:
    """Raise WrongValue where signing is on and the record does not have the signature that `with_signature` gives it."""
    if signing_is_on():
        head, _, end = raw.rpartition(_BEFORE_SIGNATURE)
        signature = end[:-2].decode("ascii", "replace") if end.endswith(b'"}') and head else None
        if wrong := fault(signature, purpose, field, head + b"}"):
            raise WrongValue(wrong)
