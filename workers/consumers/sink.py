"""Places for items: store a batch durably before returning. Each item may come twice, none may be lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from redis_components.errors import TrawlError

if TYPE_CHECKING:
    from redis_components.items.groups import ItemGroup
    from redis_components.items.stream import ItemStream

T = TypeVar("T")


class SinkUnavailable(TrawlError):
    """The place does not take items at the moment; they stay in Redis, and it is tried again."""


class Item(NamedTuple):
    """One item of a batch."""

    place: int
    """In the batch, from 0."""
    value: Any
    """As decoded from JSON."""


class Stored(NamedTuple):
    """Result of a batch that is stored."""

    refused: dict[int, str]
    """Reasons of the items that cannot be stored, by index."""
    done: Sequence[str] = ()
    """Start tasks whose pending mark ends."""


class Sink:
    """A place for items. Not for two threads. A subclass has `write`, or `store` where the items are not just any JSON."""

    batch = 500
    lock_s = 0.0
    """Least life of the consumer's lock: longer than storing one batch takes."""

    def peek(self, stream: ItemStream | ItemGroup, token: str) -> list[bytes]:  # noqa: ARG002 - the lock is for `Parts`
        """Return the next batch, under the lock `token`; none while there is nothing to store."""
        return stream.peek(self.batch)

    def store(self, payloads: Sequence[bytes]) -> Stored:
        """Store a batch, so that a power failure does not lose it.

        Raises SinkUnavailable where it may work later, another TrawlError where the operator has to mend something.
        """
        items, refused = [], dict[int, str]()
        for place, payload in enumerate(payloads):
            try:
                items.append(Item(place, msgspec.json.decode(payload)))
            except (ValueError, RecursionError):  # msgspec's errors are ValueErrors
                refused[place] = "it is not JSON: REDIS_ITEMS_SERIALIZER writes something else"
        return Stored(refused | self.write(items) if items else refused)

    def write(self, items: Sequence[Item]) -> dict[int, str]:
        """Store the items as `store` does; return the reasons of those that cannot be stored, by index."""
        raise NotImplementedError

    def settled(self) -> None:
        """Count the batch that was stored last: it has left Redis."""

    def tick(self) -> None:
        """Do periodic work: called about once a second, also without items."""

    def close(self) -> None:
        """Release the sink: no more items come."""


def by_halves(store: Callable[[Sequence[T]], str | None], items: Sequence[T]) -> list[tuple[T, str]]:
    """Store items at once, or by halves where `store` returns why it cannot. Return each refused one with the reason."""
    if not items or (reason := store(items)) is None:
        return []
    if len(items) == 1:
        return [(items[0], reason)]
    half = len(items) // 2
    return by_halves(store, items[:half]) + by_halves(store, items[half:])


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
