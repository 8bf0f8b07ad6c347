"""Two hundred slots on one node: time until all crawl, cost of each, and recovery when some of them are killed.

    python -m benchmarks.fleet.many_slots [--slots 200] [--killed 20] [--files 1024]

One worker for all slots, a beat, and a service of that size with a small spider that has read a page and waits. The soft
limit of open files is `--files`, what a login shell and systemd give. Memory is what the processes would give back (USS,
summed); descriptors are those of the worker's main process, and the maximum of the others. Where memory is short, so many slots
are tried as fit, and the table has their number.
"""

from __future__ import annotations

import random
import resource
import tempfile
import time
from pathlib import Path
from statistics import mean

import psutil

from benchmarks.support.report import Report, options
from tests.support.fleet import MARK, Program, ToyFleet
from tests.support.processes import arguments, none_left, wait_until

TRIED_FIRST = 20
KEPT_FREE = 0.1  # of what is available
LONGEST_S = 350.0
REST_S = 20.0


def main() -> int:
    """Run the benchmark and print the report; exit code 1 where a slot is missing."""
    parser = options(__doc__)
    parser.add_argument("--slots", type=int, default=200, help="crawlers of the node (default: %(default)s)")
    parser.add_argument("--killed", type=int, default=20, help="of them, by SIGKILL at once (default: %(default)s)")
    parser.add_argument("--files", type=int, default=1024, help="soft limit of open files (default: %(default)s)")
    chosen = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (chosen.files, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    report = Report(title="Many slots on one node", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    with tempfile.TemporaryDirectory(prefix="trawl-slots-") as name, none_left((MARK, name)):
        first = min(TRIED_FIRST, chosen.slots)
        with ToyFleet(Path(name), f"toy={first}", TRAWL_NODE_CRAWLERS=str(chosen.slots), TOY_MODE="rest") as fleet:
            report.served_by(fleet.redis.client())
            rows = _measured(fleet, chosen.slots, chosen.killed)
    report.table(["what", "figure"], rows)
    report.target(f"all of {chosen.slots} slots crawl, and again after {chosen.killed} were killed", rows[0][1] == chosen.slots)
    report.finish(chosen)
    return int(rows[0][1] != chosen.slots)


def _measured(fleet: ToyFleet, slots: int, killed: int) -> list[list[object]]:
    node, _ = fleet.node(), fleet.beat()
    main = psutil.Process(node.process.pid)
    first = min(TRIED_FIRST, slots)
    _whole(fleet, first)
    slots = min(slots, first + int((1 - KEPT_FREE) * psutil.virtual_memory().available / _of_one_more(fleet, main)))
    begun, cpu = time.monotonic(), _cpu(main)
    fleet.registry.set_desired("toy", slots)
    wanted, slots = slots, _come_up(fleet, slots)
    fleet.registry.set_desired("toy", slots)
    up_s, up_cpu_s = time.monotonic() - begun, _cpu(main) - cpu
    cpu = _cpu(main)
    time.sleep(REST_S)
    rest = (_cpu(main) - cpu) / REST_S
    rows: list[list[object]] = [
        ["slots that crawl", slots],
        ["memory of the node, MB", (whole := _memory(_processes(main))) / 1e6],
        ["of that for each slot, MB", whole / slots / 1e6],
        ["of that its crawler, MB", _memory(_crawlers(fleet)) / slots / 1e6],
        [f"from {first} to so many of {wanted}, s", up_s],
        ["processor time of that, s", up_cpu_s],
        ["at rest, part of a core", rest],
        ["at rest, part of a core for each slot", rest / slots],
        ["descriptors of the main process", main.num_fds()],
        ["most descriptors of another process", max(_descriptors(one) for one in main.children(recursive=True))],
        ["connections of Redis", fleet.redis.client().info("clients")["connected_clients"]],
    ]
    return [*rows, *_killed(fleet, slots, killed), *_ended(node)]


def _killed(fleet: ToyFleet, slots: int, killed: int) -> list[list[object]]:
    """Kill some crawlers; return the time until each has a successor, and the number of others that were replaced."""
    before = fleet.crawlers()
    chosen = random.Random(7).sample(sorted(before), killed)
    begun = time.monotonic()
    for name in chosen:
        psutil.Process(before[name].pid).kill()
    gone = {before[name].pid for name in chosen}
    wait_until(
        lambda: len(now := fleet.crawlers()) == slots and not gone & {one.pid for one in now.values()}, fleet.said, LONGEST_S
    )
    took, after = time.monotonic() - begun, fleet.crawlers()
    touched = sum(after[name].pid != one.pid for name, one in before.items() if name not in chosen)
    return [[f"{killed} killed at once: all back, s", took], ["of the others, replaced", touched]]


def _ended(node: Program) -> list[list[object]]:
    begun = time.monotonic()
    node.process.terminate()
    code = node.wait(LONGEST_S)
    return [["SIGTERM of the worker until all are gone, s", time.monotonic() - begun], ["its exit code", code]]


def _whole(fleet: ToyFleet, size: int) -> None:
    def state_of_fleet() -> str:
        return f"{len(fleet.crawlers())} of {size}\n{fleet.said()[-5000:]}"

    wait_until(lambda: len(fleet.crawlers()) == size, state_of_fleet, LONGEST_S)


def _come_up(fleet: ToyFleet, size: int) -> int:
    """Return how many crawl, at most `LONGEST_S` later."""
    end = time.monotonic() + LONGEST_S
    while (there := len(fleet.crawlers())) < size and time.monotonic() < end:
        time.sleep(0.5)
    return there


def _processes(main: psutil.Process) -> list[psutil.Process]:
    return [main, *(one for one in main.children(recursive=True) if arguments(one))]


def _of_one_more(fleet: ToyFleet, main: psutil.Process) -> float:
    """Memory for one more: its crawler, and what its process of the pool grows by, which is there and waits."""
    crawlers = _crawlers(fleet)
    pool = sorted(_memory([one]) for one in main.children(recursive=True) if one not in crawlers and arguments(one))
    return _memory(crawlers) / len(crawlers) + mean(pool[-len(crawlers) :]) - pool[0]


def _crawlers(fleet: ToyFleet) -> list[psutil.Process]:
    return [psutil.Process(one.pid) for one in fleet.crawlers().values()]


def _memory(processes: list[psutil.Process]) -> float:
    return float(sum(one.memory_full_info().uss for one in processes))


def _cpu(main: psutil.Process) -> float:
    return sum(sum(one.cpu_times()[:2]) for one in _processes(main))


def _descriptors(process: psutil.Process) -> int:
    return int(process.num_fds())


if __name__ == "__main__":
    raise SystemExit(main())
