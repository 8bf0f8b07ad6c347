"""What all outputs have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, TypeVar

import msgspec

from forums.storage.event_reader import Event
from redis_components.errors import ConfigError, TrawlError

Result = TypeVar("Result")


class NotTaken(TrawlError):
    """The output took nothing now: it is away, full or wrongly configured. It is tried again, and nothing is lost."""

    def __init__(self, reason: str, *, retry_after_s: float | None = None, poison: bool = False) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s  # what the receiver asked for
        self.poison = poison  # it is there, and fails at this batch: its first event may be the reason


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What became of a batch: its first `number` events are done with, of which some may have been refused."""

    number: int
    refused: Sequence[tuple[Event, str]] = ()  # for good, each with the receiver's words


class Output(Protocol):
    """Takes events, oldest first. The same ones may come again after a crash; their ids are the same then."""

    def deliver(self, events: Sequence[Event], *, single: bool = False) -> Taken:
        """Hand over a batch (`single`: its first event alone). Raises NotTaken."""
        ...


def acknowledged(sending: Coroutine[Any, Any, Result], within_s: float) -> Result:
    """What the coroutine returns, once all is acknowledged. Raises NotTaken where that takes longer."""
    try:
        return asyncio.run(asyncio.wait_for(sending, within_s))
    except TimeoutError:
        raise NotTaken(f"no acknowledgement within {within_s:g} s") from None


def require(module: str, output: str, package: str, extra: str) -> None:
    """Raises ConfigError where the client of an output is not installed."""
    try:
        import_module(module)
    except ImportError:
        raise ConfigError(f"output {output} needs {package}: pip install 'trawl-fleet[{extra}]'") from None


def encode(event: Event) -> bytes:
    """An event as one line of JSON in UTF-8."""
    return msgspec.json.encode(event)
