"""Cost of an exchange in Redis as its queue grows.

    python -m benchmarks.frontier.growth [--requests 100000 1000000 10000000] [--rounds 12]

Two servers of the same kind, one empty, one with so many queued requests and their fingerprints. One process each stores 30
requests, leases 30 and acks 30 in an exchange; in rounds of 40 exchanges, in turn. The figure is the processor time of the
server's main thread, and the ratio the median of the pairs. Filled inside of the server with members as `exchange.lua` stores
them; priorities are all equal.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from statistics import median

import redis

from benchmarks.support.report import Report, options
from redis_components.frontier.messages import NO_FILTER, NewRequest
from tests.support.owner import KEYS, Owner
from tests.support.redis_server import RedisServer

PAYLOAD = b"x" * 200
EXCHANGES = 40
AT_ONCE = 20_000
WANTED, WANTED_BYTES = 1.3, 450
FILL = """
local payload, first, number = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
for n = first, first + number - 1 do
  local order = struct.pack('>I4I4', math.floor(n / 4294967296), n % 4294967296)
  redis.call('ZADD', KEYS[1], 0, order .. '\\0' .. payload .. n)
  redis.call('SADD', KEYS[2], redis.sha1hex(n):sub(1, 20))
end
"""


class Side:
    """One server, and the process that crawls on it."""

    def __init__(self, client: redis.Redis, requests: int) -> None:
        self._client, self._number = client, 10**9
        before = self._info("memory")["used_memory"]
        for first in range(0, requests, AT_ONCE):
            client.eval(FILL, 2, KEYS.ready(), KEYS.fingerprints(), PAYLOAD, first, min(AT_ONCE, requests - first))
        self.bytes_each = (self._info("memory")["used_memory"] - before) / requests if requests else 0.0
        self._owner = Owner(client, "one", concurrency=30, max_prefetch=30).open()
        self._owner.advance(0.2)

    def cost_us(self) -> float:
        """Processor time of one exchange, mean of a round."""
        before, frontier = self._spent_s(), self._owner.frontier
        exchanges = frontier.exchanges
        for _ in range(EXCHANGES):
            while (lease := frontier.take()) is not None:
                frontier.ack(lease.id)
            for _ in range(30):
                self._number += 1
                frontier.add_request(NewRequest(NO_FILTER, "0", b"%d" % self._number + PAYLOAD))
            self._owner.advance(0.03)
        return (self._spent_s() - before) * 1e6 / (frontier.exchanges - exchanges)

    def close(self) -> None:
        self._owner.frontier.stop()

    def _spent_s(self) -> float:
        found = self._info("cpu")
        return float(found["used_cpu_user_main_thread"] + found["used_cpu_sys_main_thread"])

    def _info(self, section: str) -> dict[str, float]:
        return dict(self._client.info(section))


def compared(requests: int, rounds: int) -> list[object]:
    """One row: µs empty, µs with so many, the ratio, the bytes of each."""
    with ExitStack() as stack:
        sides = []
        for number in (0, requests):
            client = stack.enter_context(RedisServer()).client()
            sides.append(Side(client, number))
            stack.callback(sides[-1].close)
        for side in sides:
            side.cost_us()  # the first ones come to rest
        pairs = [(sides[0].cost_us(), sides[1].cost_us()) for _ in range(rounds)]
    empty, full = (median(one) for one in zip(*pairs, strict=True))
    return [requests, empty, full, median(b / a for a, b in pairs), sides[1].bytes_each]


def main() -> None:
    """Run the benchmark and print the report."""
    parser = options(__doc__)
    parser.add_argument("--requests", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000], help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=12, help="of each (default: %(default)s)")
    chosen = parser.parse_args()
    report = Report(title="Growth", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    with RedisServer() as server:
        report.served_by(server.client())
    rows = []
    for requests in chosen.requests:
        rows.append(compared(requests, chosen.rounds))
        print(rows[-1], file=sys.stderr, flush=True)
    report.table(["requests queued", "µs an exchange, empty", "µs, with these", "ratio", "bytes a request"], rows)
    report.target(f"at most {WANTED} times of empty", all(float(str(row[3])) <= WANTED for row in rows))
    report.target(f"at most {WANTED_BYTES} bytes a request", all(float(str(row[4])) <= WANTED_BYTES for row in rows))
    report.finish(chosen)


if __name__ == "__main__":
    main()
