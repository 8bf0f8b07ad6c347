"""The roll under way: crawlers that are replaced by fresh processes, one after the other, as everybody can read it in Redis."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum

import msgspec
import redis

from .answers import as_bytes
from .fleet_records import slot_name
from .keys import FleetKeys
from .scripts import script


class RollState(StrEnum):
    """How far a roll is."""

    ROLLING = "rolling"  # `reconcile_fleet` goes on with it
    DONE = "done"  # every crawler was replaced, or is not wanted any more
    FAILED = "failed"  # it stopped by itself: the reason says why; crawlers that were not replaced go on as they are
    ABORTED = "aborted"  # an operator stopped it


@dataclass(frozen=True, kw_only=True)
class RollStep:
    """A crawler that a roll has to replace, as it was when the roll began."""

    spider: str
    number: int
    token: int  # fencing token of its supervisor
    pid: int
    restarts: int  # processes before it

    @property
    def name(self) -> str:
        """`forum_detail/2`."""
        return slot_name(self.spider, self.number)


@dataclass(frozen=True, kw_only=True)
class Roll:
    """One roll from its beginning to its end. Times are Redis's, in epoch seconds."""

    id: str  # the reason of its orders: a supervisor obeys each once
    services: tuple[str, ...]
    state: RollState = RollState.ROLLING
    waiting: tuple[RollStep, ...] = ()  # not begun
    current: RollStep | None = None  # told to go, or awaited
    replaced: tuple[RollStep, ...] = ()
    left_out: tuple[str, ...] = ()  # slots that nobody wants any more
    started_at: float = 0.0
    step_at: float = 0.0  # since when the present step, or the wait before it, is under way
    healthy_at: float | None = None  # since when the present crawler's successor is well
    seen_at: float = 0.0  # when it was last looked at
    reason: str | None = None  # why it ended, or what it waits for

    @property
    def total(self) -> int:
        """Crawlers that it replaces, has replaced or has left out."""
        return len(self.waiting) + len(self.replaced) + len(self.left_out) + (self.current is not None)

    def sentence(self) -> str:
        """`rolling: 3 of 8 replaced, replaces forum_detail/2`."""
        done = f"{self.state}: {len(self.replaced)} of {self.total} replaced"
        left_out = f", {len(self.left_out)} not wanted any more" if self.left_out else ""
        return f"{done}{left_out}{f', {self.reason}' if self.reason else ''}"

    def to_json(self) -> str:
        """One line."""
        return msgspec.json.encode(asdict(self)).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Roll:
        """Read what `to_json` wrote, here or in a newer version. Raises ValueError for anything else."""
        return msgspec.json.decode(text, type=cls)


class RollNote:
    """Where the fleet's roll stands written: one at a time. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis, keys: FleetKeys | None = None) -> None:
        self._client = client
        self._key = (keys or FleetKeys()).roll()
        self._found = b""

    def read(self) -> Roll | None:
        """The present roll, or the last one; None when there was none that this version can read."""
        self._found = as_bytes(self._client.hget(self._key, "roll") or b"")
        try:
            return Roll.from_json(self._found) if self._found else None
        except ValueError:
            return None

    def write(self, roll: Roll) -> bool:
        """Put it in the place of what was read; False, and nothing is changed, when somebody else has written meanwhile."""
        args = {"field": "roll", "expected": self._found, "value": roll.to_json()}
        return bool(script("swap")(self._client, {"notes": self._key}, args))
