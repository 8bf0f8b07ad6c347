"""Random deaths in a fleet that crawls the demo's living forum: crawlers, pool children, workers, nodes and beats."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path

from sqlalchemy import func, select

from demo.forum.process import ForumProcess
from demo.truth import Coverage, compare
from workers.storage import Database, scans

from .fleet import ROOT, Program
from .processes import wait_until
from .watched_fleet import WatchedFleet, family_of, send_all

BOARDS = 4  # as many as sites/demo.toml names
SITE = "demo"
SPIDERS = ("forum_list", "forum_detail")
QUIET_LOOKS = 3  # figures of one look are not of one instant: nothing may have moved over so many


class Blow(Enum):
    """What may happen next: its name, how often in comparison with the others, what it does."""

    CRAWLER_KILLED = ("SIGKILL crawler", 6)
    CRAWLER_TERMINATED = ("SIGTERM crawler", 2)
    CRAWLER_FROZEN = ("SIGSTOP crawler", 1)
    POOL_CHILD_KILLED = ("SIGKILL pool child", 4)
    WORKER_KILLED = ("SIGKILL worker", 2)
    WORKER_TERMINATED = ("SIGTERM worker", 2)
    WORKER_QUIT = ("SIGQUIT worker", 1)
    NODE_KILLED = ("SIGKILL node", 2)
    BEAT_KILLED = ("SIGKILL beat", 2)
    BEAT_TERMINATED = ("SIGTERM beat", 1)

    def __init__(self, label: str, weight: int) -> None:
        self.label = label
        self.weight = weight


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One blow of the plan; `share` picks the victim among those that are there then."""

    wait_s: float
    blow: Blow
    share: float  # 0 to 1
    back_s: float  # until a worker or a beat is started again, as systemd would


def choices(seed: int) -> Iterator[Choice]:
    """The plan, the same for the same seed."""
    dice = random.Random(seed)
    blows, weights = list(Blow), [blow.weight for blow in Blow]
    while True:
        (blow,) = dice.choices(blows, weights)
        yield Choice(wait_s=dice.uniform(1, 6), blow=blow, share=dice.random(), back_s=dice.uniform(0.5, 4))


class ForumFleet(WatchedFleet):
    """Three nodes, two beats, one list and three detail crawlers, the demo's forum, a database."""

    def __init__(self, folder: Path, forum: ForumProcess) -> None:
        self.database_url = f"sqlite:///{folder / 'trawl.sqlite'}"
        environment = {
            "SCRAPY_SETTINGS_MODULE": "workers.settings",
            "TRAWL_SITES_DIR": str(ROOT / "sites"),
            "TRAWL_DEMO_URL": forum.url,
            "TRAWL_DATABASE_URL": self.database_url,
        }
        super().__init__(folder, "forum_list=1,forum_detail=3", nodes="abc", beats=2, **environment)
        self.forum = forum

    def whole(self) -> bool:
        return self.at_work().keys() == set(self.slots)

    def wait_whole_again(self, timeout_s: float = 60.0) -> None:
        wait_until(self.whole, lambda: f"every slot crawls; {self.watch.look()}\n{self.said()}", timeout_s, every_s=0.1)

    def settle(self, timeout_s: float) -> tuple[Coverage, Coverage]:
        """Let the forum stand still, wait until everything is crawled and stored, and compare the database with the forum."""
        self.forum.control(rate=0)
        still_since = datetime.now(UTC)
        with Database.from_url(self.database_url) as database:
            wait_until(lambda: self._scanned(database, still_since), lambda: self._waits("a scan of each board"), timeout_s)
            seen: list[tuple[int, ...]] = []

            def settled() -> bool:
                figures = self._figures()
                if seen and (seen[-1] != figures or any(figures[:-2])):
                    seen.clear()
                seen.append(figures)
                return len(seen) >= QUIET_LOOKS and not any(figures[:-2])

            wait_until(settled, lambda: self._waits("an idle frontier"), timeout_s, every_s=0.5)
            return compare(database, self.forum.truth(), SITE)

    def given_up(self) -> int:
        """Requests that were set aside as dead, and items that the database refused."""
        shots = [self.frontier(spider) for spider in SPIDERS]
        return sum(shot.dead + shot.bad_items for shot in shots)

    def _figures(self) -> tuple[int, ...]:
        """What waits or is worked on, the detail service first; at the end what was finished. Scans go on for ever."""
        detail, lists = self.frontier("forum_detail"), self.frontier("forum_list")
        waiting = (detail.start_tasks, detail.ready, detail.leased, detail.leased_tasks, detail.items)
        return (*waiting, detail.acked, lists.dead)

    def _scanned(self, database: Database, since: datetime) -> bool:
        """Whether each board has been scanned to its end by a scan that began after this time."""
        query = select(func.count(func.distinct(scans.c.forum_id))).where(
            scans.c.site == SITE, scans.c.started_at > since, scans.c.outcome == "complete"
        )
        (scanned,) = next(database.stream(query))
        return bool(scanned >= BOARDS)

    def _waits(self, what: str) -> str:
        return f"{what}; {[self.frontier(spider) for spider in SPIDERS]}\n{self.said()}"


@dataclass(frozen=True, kw_only=True)
class Back:
    """What will be started again, not before the old one has ended."""

    due: float  # monotonic
    gone: Program
    start: Callable[[], None]
    name: str


class Chaos:
    """Deals blows to a fleet and starts again what has no supervisor of its own."""

    def __init__(self, fleet: ForumFleet, seed: int, say: Callable[[str], None]) -> None:
        self._fleet = fleet
        self._choices = choices(seed)
        self._say = say
        self._begun = time.monotonic()
        self._back: list[Back] = []
        self.dealt: Counter[str] = Counter()

    def rage(self, seconds: float) -> None:
        """Deal blows for so long, then bring back everything that is down."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            choice = next(self._choices)
            self._pass(min(choice.wait_s, max(0.0, until - time.monotonic())))
            if time.monotonic() < until and (victim := self._strike(choice)):
                self.dealt[choice.blow.label] += 1
                self._tell(f"{choice.blow.label} {victim}")
        wait_until(self._all_back, lambda: f"everything is started again; {self._back}", 60)

    def _pass(self, seconds: float) -> None:
        """Wait; start again what is due meanwhile."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._all_back()
            time.sleep(0.05)

    def _all_back(self) -> bool:
        """Start again what is due and has ended; True when nothing is missing."""
        for one in [one for one in self._back if one.due <= time.monotonic() and one.gone.process.poll() is not None]:
            self._back.remove(one)
            one.start()
            self._tell(f"{one.name} is started again")
        return not self._back

    def _tell(self, what: str) -> None:
        at_work = len(self._fleet.watch.look())
        self._say(f"{time.monotonic() - self._begun:6.1f} s  {what}   ({at_work} crawlers)")

    def _strike(self, choice: Choice) -> str:
        """Deal one blow; the victim's name, or nothing when there is none of the kind."""
        match choice.blow:
            case Blow.CRAWLER_KILLED:
                return self._crawler(choice, signal.SIGKILL)
            case Blow.CRAWLER_TERMINATED:
                return self._crawler(choice, signal.SIGTERM)
            case Blow.CRAWLER_FROZEN:
                return self._crawler(choice, signal.SIGSTOP)
            case Blow.POOL_CHILD_KILLED:
                return self._crawler(choice, signal.SIGKILL, its_supervisor=True)
            case Blow.WORKER_KILLED | Blow.NODE_KILLED:
                return self._node(choice, signal.SIGKILL)
            case Blow.WORKER_TERMINATED:
                return self._node(choice, signal.SIGTERM)
            case Blow.WORKER_QUIT:
                return self._node(choice, signal.SIGQUIT)
            case Blow.BEAT_KILLED:
                return self._beat(choice, signal.SIGKILL)
            case Blow.BEAT_TERMINATED:
                return self._beat(choice, signal.SIGTERM)

    def _crawler(self, choice: Choice, number: signal.Signals, *, its_supervisor: bool = False) -> str:
        there = sorted(self._fleet.occupants().values(), key=lambda one: (one.slot, one.pid))
        if not there:
            return ""
        victim = there[int(choice.share * len(there))]
        try:
            os.kill(victim.supervisor if its_supervisor else victim.pid, number)
        except ProcessLookupError:
            return ""
        return f"{'of ' if its_supervisor else ''}{victim.slot} (pid {victim.pid})"

    def _node(self, choice: Choice, number: signal.Signals) -> str:
        there = sorted(name for name, node in self._fleet.nodes.items() if node.process.poll() is None)
        if not there:
            return ""
        name = there[int(choice.share * len(there))]
        node = self._fleet.nodes.pop(name)
        if choice.blow is Blow.NODE_KILLED:
            send_all(family_of(node), number)
        else:
            node.process.send_signal(number)
        due = time.monotonic() + choice.back_s
        self._back.append(Back(due=due, gone=node, start=lambda: self._fleet.start_node(name), name=f"node {name}"))
        return name

    def _beat(self, choice: Choice, number: signal.Signals) -> str:
        there = [beat for beat in self._fleet.beats if beat.process.poll() is None]
        if not there:
            return ""
        beat = there[int(choice.share * len(there))]
        self._fleet.beats.remove(beat)
        beat.process.send_signal(number)
        due = time.monotonic() + choice.back_s
        self._back.append(Back(due=due, gone=beat, start=self._fleet.start_beat, name="a beat"))
        return f"(pid {beat.process.pid})"
