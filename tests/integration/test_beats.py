"""Several beats, real processes: one sends, and whatever happens to it or to Redis, rounds are neither repeated nor skipped."""

from __future__ import annotations

import json
import signal
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
import redis

from tests.support.fleet import Program, ToyFleet
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from workers.state.beats import Beats, BeatView
from workers.state.keys import FleetKeys
from workers.state.registry import Registry

pytestmark = pytest.mark.usefixtures("no_process_left")

KEYS = FleetKeys()
EVERY_S = {"seed_forums": 5.0, "reconcile_fleet": 2.0, "store_items": 1.0}  # those that come often enough to be counted


class Clockwork:
    """Beats without a worker: what they send stays in the queue and can be counted."""

    def __init__(self, fleet: ToyFleet, queue: redis.Redis | None = None) -> None:
        self.fleet = fleet
        self.client = fleet.redis.client()
        self.queue = queue or self.client
        self.beats: dict[int, Program] = {}

    def start(self, number: int = 1) -> None:
        for _ in range(number):
            beat = self.fleet.beat("--loglevel=INFO")
            self.beats[beat.process.pid] = beat
        wait_until(lambda: len(self.look().waiting) + 1 == self.alive(), self.fleet.said, 60)

    def alive(self) -> int:
        return sum(beat.process.poll() is None for beat in self.beats.values())

    def look(self) -> BeatView:
        view = Beats(self.client).look(Registry(self.client).now())
        assert view.leader
        return view

    def leader(self, but_not: Program | None = None, timeout_s: float = 60.0) -> Program:
        def found() -> Program | None:
            pid = int((self.look().leader or "").rpartition(":")[2])
            return self.beats[pid] if but_not is None or pid != but_not.process.pid else None

        return wait_until(found, lambda: f"another beat leads; {self.fleet.said()}", timeout_s)  # type: ignore[return-value]

    @contextmanager
    def events_of_the_lock(self) -> Iterator[Callable[[], list[str]]]:
        """What Redis has done to the leader's lock since the block began, in its words: set, del, expired, …"""
        self.client.config_set("notify-keyspace-events", "KA")
        with self.client.pubsub(ignore_subscribe_messages=True) as listener:
            listener.subscribe(f"__keyspace@0__:{KEYS.beat_leader()}")
            wait_until(lambda: self.client.pubsub_numsub(f"__keyspace@0__:{KEYS.beat_leader()}")[0][1], "it listens")

            def happened() -> list[str]:
                told = []
                while listener.connection.can_read(0.2):
                    if message := listener.get_message():
                        told.append(message["data"].decode())
                return told

            yield happened

    def rounds(self) -> dict[str, list[tuple[int, float]]]:
        """(token, due) of every message sent, by entry, in the order of their sending."""
        found = defaultdict(list)
        for raw in reversed(self.queue.lrange("control", 0, 9999)):
            name, token, due = json.loads(raw)["headers"]["trawl_round"]
            if name in EVERY_S:
                found[name].append((token, due))
        return found

    def sends(self) -> None:
        """Wait until something more is sent."""
        before = self.queue.llen("control")
        wait_until(lambda: self.queue.llen("control") > before, lambda: f"a beat sends; {self.fleet.said()}")

    def age(self) -> None:
        """The lock has run out."""
        self.client.pexpire(KEYS.beat_leader(), 1)


@pytest.fixture
def clockwork(tmp_path: Path) -> Iterator[Clockwork]:
    with ToyFleet(tmp_path, "toy=1") as fleet:
        yield Clockwork(fleet)


def check(rounds: dict[str, list[tuple[int, float]]], longest_gap_s: float, cut_off: int = 0) -> None:
    """Each round once, in order; between two rounds one period, or the time that nobody led."""
    for name, messages in rounds.items():
        # A leader that is frozen between noting a round and sending it sends it when it goes on: workers begin no round of an
        # older leader (beat_begin.lua).
        newest = list(accumulate((token for token, _ in messages), max))
        sent = [one for one, token in zip(messages, newest, strict=True) if one[0] == token]
        assert len(messages) - len(sent) <= cut_off, f"{name}: a beat sent after it was replaced: {messages}"
        dues = list(dict.fromkeys(due for _, due in sent))
        # A leader that is killed, frozen or robbed between sending and saying so leaves its last round to the next one, which
        # sends it again.
        assert len(sent) - len(dues) <= cut_off, f"{name}: a round was sent twice: {sent}"
        assert sent == sorted(sent), f"{name}: rounds out of order: {sent}"
        for before, after in pairwise(dues):
            assert EVERY_S[name] - 0.01 <= after - before <= EVERY_S[name] + longest_gap_s, f"{name}: {dues}"


def test_a_leader_that_dies_leaves_is_frozen_or_robbed_is_replaced(clockwork: Clockwork) -> None:
    clockwork.start(3)
    clockwork.sends()

    killed = clockwork.leader()
    killed.process.kill()
    assert clockwork.client.pttl(KEYS.beat_leader()) < 8000, "the lock of a dead leader ends soon"
    second = clockwork.leader(but_not=killed, timeout_s=60)
    killed.wait()

    clockwork.sends()
    with clockwork.events_of_the_lock() as events:
        second.process.terminate()
        third = clockwork.leader(but_not=second, timeout_s=60)
        assert second.wait() == 0
        happened = events()
    assert "del" in happened
    assert "expired" not in happened, "who leaves gives the lock back: nobody waits for its end"

    # Frozen: another one leads meanwhile, and nothing comes from the old one any more.
    clockwork.start()
    clockwork.sends()
    third.process.send_signal(signal.SIGSTOP)
    clockwork.age()
    fourth = clockwork.leader(but_not=third)
    clockwork.sends()
    third.process.send_signal(signal.SIGCONT)
    wait_until(lambda: "leads now, no longer this one" in third.said(), third.said)

    # Robbed: the lock is somebody else's; when that one has gone, it goes on.
    clockwork.client.set(KEYS.beat_leader(), "99999999999999999|thief:1#x", px=2000)
    wait_until(lambda: "thief:1 leads now, no longer this one" in fourth.said(), fourth.said)
    clockwork.age()
    clockwork.leader()
    clockwork.sends()
    assert set(clockwork.rounds()) == set(EVERY_S)
    check(clockwork.rounds(), longest_gap_s=30, cut_off=3)  # the lock of the dead one lives for 8 s
    assert "Traceback" not in clockwork.fleet.said()


def test_a_beat_outlives_every_kind_of_outage_of_redis_and_of_the_broker(tmp_path: Path) -> None:
    with RedisServer() as broker, ToyFleet(tmp_path, "toy=1", TRAWL_BROKER_URL=broker.url) as fleet:
        clockwork = Clockwork(fleet, queue=broker.client())
        clockwork.start()
        beat = clockwork.leader()
        clockwork.sends()

        fleet.redis.client().flushall()  # the lock and the rounds are gone; what the beat itself has sent it does not send again
        clockwork.sends()

        fleet.redis.pause()  # hangs
        said(beat, "Redis is away", 1)
        fleet.redis.resume()
        said(beat, "Redis is back", 1)
        clockwork.sends()

        fleet.redis.kill()  # refuses, and comes back empty
        said(beat, "Redis is away", 2)
        fleet.redis.start()
        said(beat, "Redis is back", 2)
        clockwork.sends()
        check(clockwork.rounds(), longest_gap_s=60)

        broker.pause()
        said(beat, "the broker is away", 1)
        broker.resume()
        said(beat, "the broker is back", 1)
        # At the start, and where Redis had forgotten it; and once more where a hang was longer than the lock lives.
        assert 3 <= beat.said().count("this one leads now") <= 5
        assert "Traceback" not in beat.said()

        beat.process.terminate()
        assert beat.wait() == 0


def said(beat: Program, what: str, times: int) -> None:
    """One line at each change, and no more."""
    wait_until(lambda: beat.said().count(what) >= times, beat.said)
    assert beat.said().count(what) == times
