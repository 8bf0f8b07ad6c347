"""Common parts of all outputs."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, TypeVar

import msgspec

from forums.storage.read.event_reader import Event
from redis_components.errors import ConfigError, TrawlError

Result = TypeVar("Result")


class NotTaken(TrawlError):
    """The output accepts nothing now: it is away, full or wrongly configured. It is tried again, and nothing is lost."""

    def __init__(self, reason: str, *, retry_after_s: float | None = None, poison: bool = False) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s  # requested by the receiver
        self.poison = poison  # the receiver answers, and fails at this batch: its first event may be the cause


@dataclass(frozen=True, kw_only=True)
class Taken:
    """Result for a batch: its first `number` events are done, some of them possibly refused."""

    number: int
    refused: Sequence[tuple[Event, str]] = ()  # for good, each with the receiver's answer


class Output(Protocol):
    """Takes events, oldest first. After a crash the same events may come again, with the same ids."""

    def deliver(self, events: Sequence[Event], *, single: bool = False) -> Taken:
        """Hand over a batch (`single`: its first event alone). Raises NotTaken."""
        ...


def acknowledged(sending: Coroutine[Any, Any, Result], within_s: float) -> Result:
    """Return the coroutine's result, once all is acknowledged. Raises NotTaken after `within_s` seconds."""
    try:
        return asyncio.run(asyncio.wait_for(sending, within_s))
    except TimeoutError:
        raise NotTaken(f"no acknowledgement within {within_s:g} s") from None


def require(module: str, output: str, package: str, extra: str) -> None:
    """Raise ConfigError if the client of an output is not installed."""
    try:
        import_module(module)
    except ImportError:
        raise ConfigError(f"output {output} needs {package}: pip install 'trawl-fleet[{extra}]'") from None


def encode(event: Event) -> bytes:
    """Encode an event as one line of JSON in UTF-8."""
    return msgspec.json.encode(event)
