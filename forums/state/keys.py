"""Redis keys of the forum application: one method per key, as in `redis_components/keys/`; and its Lua scripts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from redis_components.keys import CrawlKeys
from redis_components.server import scripts
from workers.state.keys import FleetKeys

LUA = Path(__file__).with_name("lua")


def script(name: str) -> scripts.Script:
    """Return the script `forums/state/lua/<name>.lua`. Raises KeyError if there is none."""
    return scripts.script(name, LUA)


@dataclass(frozen=True)
class ForumCrawlKeys:
    """Keys of forums' states, below the start key of the crawl that scans their lists."""

    crawl: CrawlKeys

    def marks(self) -> str:
        """HASH: scan marks of each forum (`<site>/<forum>` -> JSON): the lower end of the next scan, and the first page of its
        list for comparison.

        Written by the writer's hook, removed by `trawl forums forget`; read by the spider `forum_list`.
        """
        return f"{self.crawl.start_urls}:marks"

    def forum_states(self) -> str:
        """HASH: state of each forum for the freshness policy (`<site>/<forum>` -> JSON of `forum_states.py`), including forums
        named by an index page; `<site>/*` is the index page itself.

        Written by `store_items` after the commit; read by the seeder, `trawl forums` and the exporter.
        """
        return f"{self.crawl.start_urls}:forums"

    def forum_dues(self) -> str:
        """HASH: due time of each forum by that policy (`<site>/<forum>` -> epoch seconds, Redis).

        Written by the seeder; read by `trawl forums` and the exporter: a time far in the past is a stale board.
        """
        return f"{self.crawl.start_urls}:dues"


class ForumFleetKeys(FleetKeys):
    """The fleet's keys, and the keys of sites' states."""

    def database(self) -> str:
        """HASH: ids of databases: `known`, the database of the thread records, and `written`, the one that the fleet stores
        into, with its `place` and when (`at`); `refused` and `refused_at`, a writer's that was another one.

        Written by `store_items`, `trawl db move` and `trawl forums forget --all`; read by these, `trawl up` and `trawl status`.
        """
        return f"{self.prefix}:database"

    def wrong_sites(self) -> str:
        """HASH: sites with an invalid file (site -> the error, in one line), as the seeder last found them.

        Written by the seeder; read by it, to log each error once, and by `trawl status`.
        """
        return f"{self.prefix}:wrong_sites"

    def checked_files(self) -> str:
        """HASH: digest of the site file by which a page of a kind was checked first (`<site>/<kind>` -> 12 hex digits).

        Written and read by the forum spiders.
        """
        return f"{self.prefix}:checked_files"

    def delays(self) -> str:
        """HASH: delays of posts and comments from publication to the database (`<site>|<upper bound in s, or inf>` -> number,
        `<site>|sum` -> seconds).

        Written by `store_items` after the commit; read by the exporter.
        """
        return f"{self.prefix}:delays"

    def probing(self) -> str:
        """STRING with TTL: lock of the one process that probes sites now.

        Written and read by `probe_sites`.
        """
        return f"{self.prefix}:probing"

    def publishing(self, output: str) -> str:
        """STRING with TTL: lock of the one process that sends events to this output now.

        Written and read by `publish_events`.
        """
        return f"{self.prefix}:publishing:{output}"

    def output_troubles(self) -> str:
        """HASH: failing outputs of the rules file (name -> error, in one line).

        Written by `publish_events`; read by `trawl status`.
        """
        return f"{self.prefix}:output_troubles"

    def alarms(self, output: str) -> str:
        """STRING: alarms of an output with `alarms = true`, sent or waiting (JSON, by the problem's identity).

        Written and read by `notify_alarms`.
        """
        return f"{self.prefix}:alarms:{output}"

    def alerts(self) -> str:
        """HASH: alerts made at run time (number -> JSON with the filter, the receiver's address, the site and the time).

        Written by `trawl alert`; read by `publish_events` in each round, and by it.
        """
        return f"{self.prefix}:alerts"

    def event_stream(self, output: str) -> str:
        """STREAM: events of an output of the kind `stream` in the rules file (id = position in the log, `event` -> JSON), up to
        its `max_length`.

        Written by `publish_events`; read by consumer groups outside of Trawl.
        """
        return f"{self.prefix}:events:{output}"

    def spent(self, site: str) -> str:
        """HASH with TTL: requests sent to a site, by purpose and time (`<purpose>|<start of five minutes, epoch s>` ->
        number), of the last hours; `scan`, `detail`, `check`, `backfill`.

        Written by `spend.lua` when scans and checks are stored; read by the seeder, `trawl forums` and the exporter.
        """
        return f"{self.prefix}:spent:{site}"

    def budgets(self) -> str:
        """HASH: request budget of each site (site -> requests an hour).

        Written by the seeder from the site files; read by the exporter.
        """
        return f"{self.prefix}:budgets"

    def counted(self, site: str) -> str:
        """ZSET with TTL: scans and checks whose requests are in the hash before (score = their end, epoch s), so that none
        counts twice; of the last hours.

        Written and read by `spend.lua`.
        """
        return f"{self.prefix}:spent:{site}:counted"
