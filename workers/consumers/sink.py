"""Interface of places for items: store a batch durably before returning. Each item may come twice, none may be lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from redis_components.errors import TrawlError


class SinkUnavailable(TrawlError):
    """The place does not take items at the moment; they stay in Redis, and it is tried again."""


class Item(NamedTuple):
    """One item of a batch."""

    place: int
    """In the batch, from 0."""
    value: Any
    """As decoded from JSON."""


class Sink(Protocol):
    """A place for items. Not for two threads."""

    def write(self, items: Sequence[Item]) -> dict[int, str]:
        """Store the items, so that a power failure does not lose them; return the reasons of those that cannot be stored, by
        index.

        Raises SinkUnavailable where it may work later, another TrawlError where the operator has to mend something.
        """

    def tick(self) -> None:
        """Do periodic work: called about once a second, also without items."""

    def close(self) -> None:
        """Release the sink: no more items come."""


def to_line(value: Any) -> bytes:
    """Encode a value as one line of JSON."""
    return msgspec.json.encode(value) + b"\n"


def as_row(item: Item) -> dict[str, Any]:
    """Return the fields of an item. Raises ValueError with the reason for an item without fields."""
    if not isinstance(item.value, dict):
        raise ValueError("it is not an object with fields, so it cannot be a row")
    if not item.value:
        raise ValueError("it has no fields")
    return item.value


def as_cell(value: Any) -> Any:
    """Convert a value for a cell: lists and objects become JSON."""
    return msgspec.json.encode(value).decode() if isinstance(value, list | dict) else value
