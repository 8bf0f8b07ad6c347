"""Cost of keeping idle crawlers alive: CPU of each process, Redis commands for each crawler and minute.

    python -m benchmarks.fleet.supervision [--seconds 60] [--crawlers 1 10] [--simulated 1 10 100] [--rounds-of 1 10 100 1000]

A fleet of a size on a Redis of its own: a worker, a beat, crawlers of the detail service without a start task. What the fleet
costs without a crawler is measured first and taken off. "All" are the commands that Redis ran, those inside scripts too (INFO
commandstats after CONFIG RESETSTAT); "sent" those that came from clients (MONITOR, in the same time), of which "frontier" are
the crawlers' looks for work and the rest is supervision. Simulated crawlers are real supervisors in one process over crawlers
that only send heartbeats: no frontier, and no CPU that could be measured apart. A round of `reconcile_fleet` and a scrape of the
exporter are timed with so many slots in Redis, in one process.
"""

from __future__ import annotations

import json
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import redis

from benchmarks.support.report import Report, options
from benchmarks.support.simulated_fleet import NAME, SPIDER
from redis_components.server.scripts import LUA, script, script_files
from tests.support.fleet import MARK, Program, ToyFleet
from tests.support.processes import arguments, none_left, wait_until
from tests.support.redis_server import RedisServer
from workers.state.keys import LUA as FLEET_LUA
from workers.state.keys import FleetKeys
from workers.state.nodes import Nodes

FRONTIER = ("exchange", "heartbeat")  # scripts of a crawler that looks for work and keeps its leases
FLAT = 1.25  # the largest ratio of two sizes' cost for each crawler that still counts as flat
NOISE = 30.0  # commands in a minute by which a whole fleet may differ from itself


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Cost of a fleet in a minute."""

    commands: float = 0.0
    sent: Counter[str] = field(default_factory=Counter)
    redis_cpu_s: float = 0.0
    cpu_s: dict[str, float] = field(default_factory=dict)  # of a role: all its processes

    @property
    def frontier(self) -> float:
        return sum(calls for name, calls in self.sent.items() if name in FRONTIER)

    @property
    def supervision(self) -> float:
        return self.sent.total() - self.frontier


class Monitor:
    """Counts what clients send, by name; scripts by theirs. Used as a context."""

    def __init__(self, client: redis.Redis) -> None:
        self._scripts = {script(name, folder).sha: name for folder in (LUA, FLEET_LUA) for name in script_files(folder)}
        self._client = client
        self._ended = False
        self.sent: Counter[str] = Counter()

    def __enter__(self) -> Monitor:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._listening = threading.Event()
        self._thread.start()
        self._listening.wait(5)
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        self._client.ping()  # one more command, for the monitor to see
        self._thread.join(5)

    def _run(self) -> None:
        with self._client.monitor() as monitor:
            self._listening.set()
            for command in monitor.listen():
                if self._ended:
                    return
                if command["client_type"] != "lua":
                    name, _, rest = command["command"].partition(" ")
                    self.sent[self._scripts.get(rest.partition(" ")[0], name.lower())] += 1


def measure(client: redis.Redis, roles: dict[str, list[psutil.Process]], seconds: float, settle_s: float) -> Cost:
    """Measure for `seconds`, per minute; after `settle_s`, to leave out the cost of the start."""
    wait_until(lambda: Nodes(client).all(), "the node has registered", 30)
    time.sleep(settle_s)
    cpu = {role: _cpu(processes) for role, processes in roles.items()}
    client.config_resetstat()
    before = client.info("cpu")
    with Monitor(client) as monitor:
        time.sleep(seconds)
        stats, after = client.info("commandstats"), client.info("cpu")
    minutes = seconds / 60
    return Cost(
        commands=sum(one["calls"] for one in stats.values()) / minutes,
        sent=Counter({name: calls / minutes for name, calls in monitor.sent.items()}),
        redis_cpu_s=sum(after[name] - before[name] for name in ("used_cpu_user", "used_cpu_sys")) / minutes,
        cpu_s={role: (_cpu(processes) - cpu[role]) / minutes for role, processes in roles.items()},
    )


def _cpu(processes: list[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)


@contextmanager
def fleet_of(room: int, desired: int) -> Iterator[ToyFleet]:
    """Run a Redis for a fleet with the real settings and without a site."""
    with tempfile.TemporaryDirectory(prefix="trawl-supervision-") as name:
        folder = Path(name)
        (folder / "sites").mkdir()
        environment = {
            "SCRAPY_SETTINGS_MODULE": "workers.settings",
            "TRAWL_SITES_DIR": str(folder / "sites"),
            "TRAWL_NODE_CRAWLERS": str(room),
        }
        with none_left((MARK, name)), ToyFleet(folder, f"{SPIDER}={desired}", **environment) as fleet:
            try:
                yield fleet
            finally:
                for program in fleet.running():
                    program.process.send_signal(signal.SIGTERM)
                for program in fleet.running():
                    program.wait(40)


def real(sizes: list[int], seconds: float, settle_s: float) -> dict[int, Cost]:
    """Measure a fleet of each size, and an empty one."""
    costs = {}
    with fleet_of(max(sizes), 0) as fleet:
        node, beat = fleet.node(), fleet.beat()
        client = fleet.redis.client()
        for size in (0, *sizes):
            fleet.registry.set_desired(SPIDER, size)
            wait_until(lambda size=size: len(fleet.crawlers()) == size, fleet.said, 60)  # type: ignore[misc]
            costs[size] = measure(client, _roles(node, beat), seconds, settle_s)
            print(f"{size} crawlers: {costs[size]}", file=sys.stderr, flush=True)
    return costs


def _roles(node: Program, beat: Program) -> dict[str, list[psutil.Process]]:
    main = psutil.Process(node.process.pid)
    below = main.children(recursive=True)
    crawlers = [process for process in below if "workers.crawler" in arguments(process)]
    supervisors = [process.parent() or process for process in crawlers]
    return {
        "worker": [main],
        "supervisors": supervisors,
        "crawlers": crawlers,
        "other pool processes": [process for process in below if process not in (*crawlers, *supervisors)],
        "beat": [psutil.Process(beat.process.pid)],
    }


def simulated(size: int, seconds: float, settle_s: float) -> Cost:
    """Real supervisors over simulated crawlers, with a worker and a beat that find every slot held."""
    with fleet_of(1, size) as fleet:
        fleet.program("simulated", "-m", "benchmarks.support.simulated_fleet", "supervise", str(size))
        keys, client = FleetKeys(), fleet.redis.client()
        slots = [keys.slot(SPIDER, number) for number in range(size)]
        wait_until(lambda: client.exists(*slots) == size, fleet.said, 60)
        fleet.node()
        fleet.beat()
        cost = measure(client, {}, seconds, settle_s)
        assert all(record.node == NAME for record in fleet.crawlers().values()), fleet.said()
        print(f"{size} simulated: {cost}", file=sys.stderr, flush=True)
        return cost


def rounds(size: int) -> dict[str, float]:
    """Return the cost of a round of the reconciler and of a scrape with so many slots."""
    with fleet_of(1, size) as fleet:
        text = fleet.run(f"from benchmarks.support.simulated_fleet import rounds; import json; print(json.dumps(rounds({size})))")
        return dict(json.loads(text.splitlines()[-1]))


def main() -> int:
    """Run the benchmark and print the report; exit code 1 when the cost is not flat."""
    parser = options(__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each size is measured (default: %(default)s)")
    parser.add_argument("--settle", type=float, default=10.0, help="s before that (default: %(default)s)")
    parser.add_argument("--crawlers", type=int, nargs="+", default=[1, 10], metavar="N", help="sizes with real crawlers")
    parser.add_argument("--simulated", type=int, nargs="+", default=[1, 10, 100], metavar="N", help="sizes without")
    parser.add_argument("--rounds-of", type=int, nargs="+", default=[1, 10, 100, 1000], metavar="N", help="slots in Redis")
    chosen = parser.parse_args()
    report = Report(title="What supervision costs", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    with RedisServer() as server:
        report.served_by(server.client())
    costs = real(chosen.crawlers, chosen.seconds, chosen.settle)
    base = costs.pop(0)
    pretended = {size: simulated(size, chosen.seconds, chosen.settle) for size in chosen.simulated}
    of_rounds = {size: rounds(size) for size in chosen.rounds_of}
    report.table(
        ["crawlers", "supervision, sent", "frontier, sent", "all commands", "Redis CPU, ms"],
        [
            ["none (whole fleet)", base.supervision, base.frontier, base.commands, base.redis_cpu_s * 1000],
            *(_each(f"{size}", size, cost, base) for size, cost in costs.items()),
            *(_each(f"{size} simulated", size, cost, base) for size, cost in pretended.items()),
        ],
    )
    report.table(
        ["crawlers", "CPU of worker, ms", "of a supervisor", "of a crawler", "of the other pool processes", "of beat"],
        [_cpu_line(size, cost) for size, cost in {0: base, **costs}.items()],
    )
    largest = max(costs)
    names = sorted(costs[largest].sent, key=lambda name: -costs[largest].sent[name])
    report.table(
        ["sent by clients in a minute", "no crawler", f"{largest} crawlers", "for each crawler"],
        [[n, base.sent[n], costs[largest].sent[n], (costs[largest].sent[n] - base.sent[n]) / largest] for n in names],
    )
    report.table(
        ["slots", "reconcile_fleet, ms", "its commands", "scrape, ms", "its commands "],
        [
            [size, *(one[name] for name in ("reconcile_ms", "reconcile_commands", "scrape_ms", "scrape_commands"))]
            for size, one in of_rounds.items()
        ],
    )
    flat = _judge(report, {**costs}, base, "real") & _judge(report, pretended, base, "simulated")
    report.caveats.append(
        "The first three tables are for a minute; of a crawler is: (fleet - fleet without crawlers) ÷ crawlers."
    )
    report.finish(chosen)
    return int(not flat)


def _each(name: str, size: int, cost: Cost, base: Cost) -> list[object]:
    return [
        name,
        (cost.supervision - base.supervision) / size,
        (cost.frontier - base.frontier) / size,
        (cost.commands - base.commands) / size,
        (cost.redis_cpu_s - base.redis_cpu_s) * 1000 / size,
    ]


def _cpu_line(size: int, cost: Cost) -> list[object]:
    each = max(1, size)
    ms = {role: seconds * 1000 for role, seconds in cost.cpu_s.items()}
    return [size, ms["worker"], ms["supervisors"] / each, ms["crawlers"] / each, ms["other pool processes"], ms["beat"]]


def _judge(report: Report, costs: dict[int, Cost], base: Cost, kind: str) -> bool:
    """Return True if supervision costs each crawler the same at any size of the fleet."""
    each = {size: (cost.supervision - base.supervision) / size for size, cost in costs.items()}
    least, most = min(each.values()), max(each.values())
    flat = most - least <= (FLAT - 1) * abs(least) + NOISE
    shown = ", ".join(f"{size}: {value:.0f}" for size, value in each.items())
    report.target(f"commands sent by supervision flat for each crawler and minute ({kind}; {shown})", flat)
    return flat


if __name__ == "__main__":
    sys.exit(main())
