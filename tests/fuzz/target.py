"""One target, and the cost that it may have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

from tests.support.cpu_time import least_cpu_s

CORPUS = Path(__file__).parent / "corpus"
LEAST_S, S_PER_MB = 3.0, 6.0
"""Processor time of one input; ten times what ordinary ones of its size take."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """`read` raises only what is a fault; `first` makes inputs with the structure that it looks for."""

    name: str
    read: Callable[[bytes], None]
    first: SearchStrategy[bytes]
    words: tuple[str, ...] = ()  # of the format, for what changes the inputs

    def check(self, raw: bytes, slower: float = 1.0) -> None:
        """Read an input. Raises what `read` raises, and AssertionError where it costs more than its size allows."""
        most_s = slower * (LEAST_S + S_PER_MB * len(raw) / 1e6)
        took = least_cpu_s(lambda: self.read(raw), most_s)
        assert took < most_s, f"{len(raw)} bytes cost {took:.1f} s"

    @property
    def folder(self) -> Path:
        """Where its inputs are kept."""
        return CORPUS / self.name

    def kept(self) -> Iterator[tuple[str, bytes]]:
        for file in sorted(self.folder.glob("*")):
            yield file.name, file.read_bytes()

    def made(self, count: int) -> Iterator[bytes]:
        """Inputs by structure, the same each time."""
        found: list[bytes] = []

        @settings(
            max_examples=count,
            derandomize=True,
            deadline=None,
            database=None,
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
        )
        @given(self.first)
        def take(raw: bytes) -> None:
            found.append(raw)

        take()
        yield from found


def digest(raw: bytes) -> str:
    """The name of an input's file."""
    return sha256(raw).hexdigest()[:16]
