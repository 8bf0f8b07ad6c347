"""Records in Redis: one line of JSON in a field of a hash, read and written in one way.

`JsonRecord` gives a dataclass its line; `RecordStore` reads the fields of a hash, and replaces one that was read
there: of several processes that read the same, one writes.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, ClassVar, Generic, Self, TypeVar

import redis

from .scripts import script
from .signing import fault, seal, signing_is_on
from .untrusted_values import MOST_BYTES, WrongValue, as_bytes, as_text, decoded, encoded, hash_at, is_foreign

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

    def encoded(self, field: str, record: R, *, spare: int = SIGNATURE_BYTES) -> bytes:
        """Return the line of JSON that stands for a record there. Raises ConfigError for one that is too large; `spare` bytes are
        left for what comes later.
        """
        kind = self._signed or self._kind.__name__.lower()
        raw = encoded(record, f"{kind} {field}", most=self._most - spare, cut=getattr(self._kind, "CUT", False))
        return with_signature(self._signed, field, raw) if self._signed and signing_is_on() else raw

    def swap(self, field: str, record: R | None) -> bool:
        """Put the record (None: nothing) in the place of the one that was read; return False, and change nothing, if another
        process has changed it since.
        """
        value = b"" if record is None else self.encoded(field, record)
        args = {"field": field, "expected": self._found.get(field, b""), "value": value}
        written = bool(script("swap")(self._client, {"notes": self._key}, args))
        if written:
            self._found[field] = value
        return written

    def _read(self, field: str, raw: bytes) -> R | None:
        try:
            if raw and self._signed:
                check_signature(self._signed, field, raw)
            return decoded(raw, self._kind, most=self._most) if raw else None
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
