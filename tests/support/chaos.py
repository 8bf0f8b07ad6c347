"""Random deaths in a fleet that crawls the demo's living forum: crawlers, pool children, workers, nodes and beats."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from tests.support.fleet import Program
from tests.support.forum_fleet import ForumFleet
from tests.support.processes import wait_until
from tests.support.watched_fleet import family_of, send_all

PAUSE_S = (1.0, 6.0)  # between two blows, from and to


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


def choices(seed: int, blows: Sequence[Blow] = tuple(Blow), pause_s: tuple[float, float] = PAUSE_S) -> Iterator[Choice]:
    """The plan of these blows, the same for the same seed."""
    dice = random.Random(seed)
    weights = [blow.weight for blow in blows]
    while True:
        (blow,) = dice.choices(blows, weights)
        yield Choice(wait_s=dice.uniform(*pause_s), blow=blow, share=dice.random(), back_s=dice.uniform(0.5, 4))


@dataclass(frozen=True, kw_only=True)
class Back:
    """What will be started again, not before the old one has ended."""

    due: float  # monotonic
    gone: Program
    start: Callable[[], None]
    name: str


class Chaos:
    """Deals blows to a fleet and starts again what has no supervisor of its own."""

    def __init__(self, fleet: ForumFleet, plan: Iterator[Choice], say: Callable[[str], None]) -> None:
        self._fleet = fleet
        self._choices = plan
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
