"""Who is in which slot, looked at a hundred times a second: what no record in Redis can hide."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from workers.process.options import parse

LOOK_S = 0.01
AT_ONCE = 1 << 14  # bytes that are read at once; more would be mapped anew each time
SETTLED_S = 3.0  # a process that was no crawler for so long will not become one by exec


@dataclass(frozen=True, kw_only=True)
class Occupant:
    """A crawler process, read from its command line."""

    pid: int
    slot: str
    token: int
    owner: str  # its name in the frontier
    supervisor: int  # pid of the process that launched it


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """More than one crawler in a slot: must never be."""

    slot: str
    pids: tuple[int, ...]


@dataclass
class CrawlerWatch:
    """Looks at /proc in a thread of its own, from entering to leaving. `mark` is an environment variable of the processes meant.

    A process that was frozen (SIGSTOP) is not counted as being in its slot, also when it goes on: its slot may be another's by
    then, and it has to find that out. How long it lives from then on is counted apart; the site knows whether it asks for pages.
    """

    mark: tuple[str, str]
    look_s: float = LOOK_S
    most: Counter[str] = field(default_factory=Counter)  # slot -> most crawlers at one time
    crowds: dict[Crowd, float] = field(default_factory=dict)  # -> seconds seen
    thawed: dict[int, float] = field(default_factory=dict)  # pids that were frozen -> seconds seen at work since
    filled: dict[int, float] = field(default_factory=dict)  # number of slots with a crawler -> seconds seen

    def __post_init__(self) -> None:
        self._known: dict[int, Occupant] = {}
        self._others: dict[int, float] = {}  # pids that are no crawlers so far -> first seen
        self._settled: set[str] = set()  # those that will not become one
        self._names, self._newest = set[str](), ""  # of all processes, when the newest was this one
        self._looking = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="crawler-watch", daemon=True)

    def __enter__(self) -> CrawlerWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def forget(self) -> None:
        """Begin to count anew."""
        self.most, self.crowds, self.thawed, self.filled = Counter(), {}, {}, {}

    def leave_out(self, pids: Iterable[int]) -> None:
        """Do not count these processes any more, as one that was frozen: they are cut off, and cannot hear who has their slot."""
        for pid in pids:
            self.thawed.setdefault(pid, 0.0)

    def crowded_s(self) -> float | None:
        """Seconds seen with more than one crawler in a slot; None where none was seen at all."""
        return sum(self.crowds.values()) if self.most else None

    def fewer_s(self, than: int) -> float:
        """Seconds seen with fewer slots that have a crawler."""
        return sum(seconds for slots, seconds in [*self.filled.items()] if slots < than)

    def occupied(self) -> set[str]:
        """Slots that have a crawler now."""
        return {occupant.slot for occupant, frozen in self.look().values() if not frozen}

    def look(self) -> dict[int, tuple[Occupant, bool]]:
        """Every crawler process by pid, and whether it is frozen."""
        with self._looking:
            return self._look()

    def _look(self) -> dict[int, tuple[Occupant, bool]]:
        found = {}
        newest = Path("/proc/loadavg").read_text().rpartition(" ")[2]  # first: what begins meanwhile is for the next look
        if newest != self._newest:  # a list of all costs more than the rest of a look
            self._names = {name for name in os.listdir("/proc") if name.isdigit()}  # noqa: PTH208 - a hundred times a second
            self._newest = newest
        names = self._names
        now = time.monotonic()
        self._settled &= names
        for pid in sorted(map(int, names - self._settled)):  # a parent before its children
            occupant = self._occupant(pid, now)
            if occupant and (state := _state(pid)) not in "ZX":
                found[pid] = (occupant, state in "Tt")
        for kept in (self._others, self._known):
            for gone in [pid for pid in kept if str(pid) not in names]:
                del kept[gone]
        return found

    def _run(self) -> None:
        last = time.monotonic()
        while not self._ended.wait(self.look_s):
            seen = self.look()
            now = time.monotonic()
            self._count(seen, now - last)
            last = now

    def _count(self, seen: Mapping[int, tuple[Occupant, bool]], since_s: float) -> None:
        by_slot: dict[str, list[int]] = {}
        for pid, (occupant, frozen) in seen.items():
            if frozen:
                self.thawed.setdefault(pid, 0.0)
            elif pid in self.thawed:
                self.thawed[pid] += since_s
            else:
                by_slot.setdefault(occupant.slot, []).append(pid)
        self.filled[len(by_slot)] = self.filled.get(len(by_slot), 0.0) + since_s
        for slot, pids in by_slot.items():
            self.most[slot] = max(self.most[slot], len(pids))
            if len(pids) > 1:
                crowd = Crowd(slot=slot, pids=tuple(sorted(pids)))
                self.crowds[crowd] = self.crowds.get(crowd, 0.0) + since_s

    def _occupant(self, pid: int, now: float) -> Occupant | None:
        if known := self._known.get(pid):
            return known
        if now - self._others.setdefault(pid, now) > SETTLED_S:
            self._settled.add(str(pid))
            return None
        try:
            raw = _read(pid, "cmdline")
            if b"workers.crawler" not in raw:
                return None
            line = raw.decode(errors="replace").rstrip("\0").split("\0")
            if "workers.crawler" not in line:
                return None
            environment = _read(pid, "environ").decode(errors="replace").split("\0")
        except OSError:
            return None
        if "=".join(self.mark) not in environment:
            return None
        options = parse(line[line.index("workers.crawler") + 1 :])
        if options.slot is None or options.parent is None:
            return None
        occupant = Occupant(
            pid=pid, slot=options.slot.name, token=options.slot.token, owner=options.owner, supervisor=options.parent
        )
        if (parent := self._known.get(_parent(pid))) and parent.owner == occupant.owner:
            return (
                None  # a child of a crawler between fork and exec, such as the reader of pages apart: it has its line until then
            )
        self._known[pid] = occupant
        return occupant


def _state(pid: int) -> str:
    """One letter of `ps`; X for a process that is gone."""
    return _stat(pid)[0]


def _parent(pid: int) -> int:
    """The pid of its parent; 0 for a process that is gone."""
    return int(_stat(pid)[1])


def _stat(pid: int) -> list[str]:
    try:
        return _read(pid, "stat").decode(errors="replace").rpartition(")")[2].split()
    except OSError:
        return ["X", "0"]


def _read(pid: int, name: str) -> bytes:
    """What /proc tells of a process, at half the cost of what `Path` does: it is much of a look.

    Raises OSError.
    """
    file = os.open(f"/proc/{pid}/{name}", os.O_RDONLY)
    try:
        parts = []
        while part := os.read(file, AT_ONCE):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(file)
