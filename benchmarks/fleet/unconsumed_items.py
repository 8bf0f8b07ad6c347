"""Items of a service without a consumer: the crawl stops at the bound, operators are informed, and no item is lost.

    python -m benchmarks.fleet.unconsumed_items [--bound 100000] [--posts 1100] [--consumers 3]

The project is that of tests/acceptance/forum_collector_project: a `BBSCollector` with scrapy-redis's names and nothing of
Trawl, declared in `services.toml`, two crawlers under `celery -A tasks worker`. It crawls three forums on this machine, of which
every third post has 120 comments. First nothing reads its list. Once pages in flight have ended, its length is taken twice, 10 s
apart. Then plain consumers (`BLPOP`) come, and what they get is compared with what the forums have.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.support.report import Report, options
from redis_components.admin.inspector import snapshot
from tests.support.collected_forums import SERVICE, CollectorFleet, Forum, forums_site, plain_consumers, truth
from tests.support.processes import wait_until

SETTLED_S = 10.0
PATIENCE_S = 900.0


def consume(fleet: CollectorFleet, consumers: int, number: int) -> list[bytes]:
    """Return the items that so many BLPOP consumers get together until they have `number` and no more arrive."""
    client = fleet.redis.client()
    with plain_consumers(fleet, consumers) as taken:

        def idle() -> bool:
            shot = snapshot(client, SERVICE)
            return len(taken) >= number and (shot.items, shot.ready, shot.leased, shot.start_tasks) == (0, 0, 0, 0)

        wait_until(idle, lambda: f"{number} items come; {len(taken)}\n{fleet.said()}", PATIENCE_S)
    return taken


def main() -> int:
    """Crawl and print the report; exit code 1 if an aim was missed."""
    parser = options(__doc__)
    parser.add_argument("--bound", type=int, default=100_000, help="REDIS_ITEMS_MAX_WAITING (default: %(default)s)")
    parser.add_argument("--posts", type=int, default=1_100, help="posts of each forum (default: %(default)s)")
    parser.add_argument("--consumers", type=int, default=3, help="that come at the end (default: %(default)s)")
    chosen = parser.parse_args()
    forums = {f"0000{n}": Forum(posts=chosen.posts, hot=20, third=120) for n in (1, 2, 3)}
    expected = truth(forums)
    report = Report(title="Items without a consumer", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    with (
        tempfile.TemporaryDirectory(prefix="trawl-items-") as folder,
        forums_site(forums) as site,
        CollectorFleet(Path(folder), site, max_items=chosen.bound) as fleet,
    ):
        client = fleet.redis.client()
        report.served_by(client)
        fleet.beat()
        fleet.node()
        fleet.wait_whole(f"{SERVICE}/0", f"{SERVICE}/1")
        begun = time.monotonic()
        fleet.crawl(forums, max_page=chosen.posts)
        wait_until(lambda: snapshot(client, SERVICE).backed_up, fleet.said, PATIENCE_S)
        stopped_s = time.monotonic() - begun
        wait_until(lambda: all(one.in_flight == 0 for one in fleet.crawlers().values()), fleet.said)
        time.sleep(SETTLED_S)
        shot, memory = snapshot(client, SERVICE), client.info("memory")["used_memory"]
        time.sleep(SETTLED_S)
        later = snapshot(client, SERVICE)
        code, output = fleet.status()
        reported = f"{SERVICE} starts no page" in output.replace("\n", " ")
        begun = time.monotonic()
        taken = consume(fleet, chosen.consumers, len(expected))
        taken_s = time.monotonic() - begun
    found = Counter((item["kind"], item["id"]) for item in map(json.loads, taken))
    lost, twice = len(expected - found.keys()), found.total() - len(found)
    rows = [
        ("items that the forums have", len(expected)),
        ("items in the list when pages in flight had ended", shot.items),
        (f"more of them {SETTLED_S:g} s later", later.items - shot.items),
        ("requests that wait meanwhile", later.ready + later.leased),
        ("seconds until the crawl stopped", round(stopped_s, 1)),
        ("MB of Redis then", round(memory / 1e6, 1)),
        ("exit code of `trawl status`", code),
        ("seconds until consumers had all", round(taken_s, 1)),
        ("items lost", lost),
        ("items twice", twice),
    ]
    report.table(["figure", "value"], rows)
    aims = [
        (f"the crawl stops at the bound of {chosen.bound:,}: {shot.items:,} items", later.items == shot.items >= chosen.bound),
        ("`trawl status` reports it and ends with 1", reported and code == 1),
        (f"nothing lost: {lost} items", not lost),
    ]
    for text, reached in aims:
        report.target(text, reached)
    report.caveats.append("One machine has the site, the crawlers, Redis and the consumers; an item is about 170 bytes.")
    report.finish(chosen)
    return int(not all(reached for _, reached in aims))


if __name__ == "__main__":
    sys.exit(main())
