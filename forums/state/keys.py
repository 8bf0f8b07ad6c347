"""The Redis keys of the forum application: one method per key, as in `redis_components/keys/`.

`python -m forums.state.keys` prints their part of `docs/redis-keys.md`.
"""

from __future__ import annotations

from dataclasses import dataclass

from redis_components.keys import CrawlKeys, FleetKeys
from redis_components.keys.reference import HEAD, rows


@dataclass(frozen=True)
class ForumCrawlKeys:
    """What is known of forums; the keys begin with the start key of the crawl that scans their lists."""

    crawl: CrawlKeys

    def marks(self) -> str:
        """HASH: how far the complete scans of each forum have come (`<site>/<forum>` -> JSON): down to where the next one reads,
        and the first page of its list, with which it compares.

        Written by the writer's hook, removed by `trawl forget`; read by the spider `forum_list`.
        """
        return f"{self.crawl.start_urls}:marks"

    def forum_states(self) -> str:
        """HASH: what the policy of freshness knows of each forum (`<site>/<forum>` -> JSON of `forum_states.py`), also of those
        that an index page named; `<site>/*` is the index page itself.

        Written by `store_items` after the commit; read by the seeder, `trawl forums` and the exporter.
        """
        return f"{self.crawl.start_urls}:forums"

    def forum_dues(self) -> str:
        """HASH: when each forum is due by that policy (`<site>/<forum>` -> epoch seconds, Redis).

        Written by the seeder; read by `trawl forums` and the exporter: a time that lies far behind is a board that went stale.
        """
        return f"{self.crawl.start_urls}:dues"


class ForumFleetKeys(FleetKeys):
    """The fleet's keys, and those that keep what is known of sites."""

    def breakers(self) -> str:
        """HASH: breaker of each site whose answers were not its pages (site -> JSON with state, cause, reason, since, next probe,
        evidence); closed ones are kept for a day.

        Written by crawlers, `probe_sites` and `trawl resume` (`swap.lua`); read by these, `trawl status` and the exporter.
        """
        return f"{self.prefix}:breakers"

    def database(self) -> str:
        """HASH: ids of databases: `known`, whose threads the records speak of, and `written`, which items were stored in last.

        Written by `store_items` and `trawl forget --all`; read by `store_items` and `trawl status`.
        """
        return f"{self.prefix}:database"

    def wrong_sites(self) -> str:
        """HASH: sites whose file is wrong (site -> what is wrong, in one line), as the seeder last found them.

        Written by the seeder; read by it, to say each mistake once, and by `trawl status`.
        """
        return f"{self.prefix}:wrong_sites"

    def delays(self) -> str:
        """HASH: how long posts and comments took from publication to the database (`<site>|<upper bound in s, or inf>` -> number,
        `<site>|sum` -> seconds).

        Written by `store_items` after the commit; read by the exporter.
        """
        return f"{self.prefix}:delays"

    def writer_figures(self) -> str:
        """HASH: what the forum writer has stored (`<site>|<post or comment>|<what happened>` -> number), and its work: `batches`,
        `items`, `seconds`.

        Written by `store_items` after the commit; read by the exporter.
        """
        return f"{self.prefix}:writer"

    def probing(self) -> str:
        """STRING with TTL: the one process that probes sites now.

        Written and read by `probe_sites`.
        """
        return f"{self.prefix}:probing"

    def publishing(self, output: str) -> str:
        """STRING with TTL: the one process that tells this output of events now.

        Written and read by `publish_events`.
        """
        return f"{self.prefix}:publishing:{output}"

    def output_troubles(self) -> str:
        """HASH: outputs of the rules file that take nothing now (name -> why, in one line).

        Written by `publish_events`; read by `trawl status`.
        """
        return f"{self.prefix}:output_troubles"

    def alarms(self, output: str) -> str:
        """STRING: problems that an output with `alarms = true` was told of, or will be (JSON, by what makes them one problem).

        Written and read by `notify_alarms`.
        """
        return f"{self.prefix}:alarms:{output}"

    def event_stream(self, output: str) -> str:
        """STREAM: events of an output of the kind `stream` in the rules file (id = position in the log, `event` -> JSON), as many
        as its `max_length` says.

        Written by `publish_events`; read by consumer groups outside of Trawl.
        """
        return f"{self.prefix}:events:{output}"

    def drift(self) -> str:
        """HASH: what pages of each site usually have (`<site>/<kind of page>` -> JSON with the last lots of pages, and what has
        drifted from them); as many as there are site files, times four.

        Written by `probe_sites`; read by it, by `trawl status` and the exporter.
        """
        return f"{self.prefix}:drift"

    def spent(self, site: str) -> str:
        """HASH with TTL: requests that a site was sent, by what for and when (`<purpose>|<start of five minutes, epoch s>` ->
        number), of the last hours; `scan`, `detail`, `check`, `backfill`.

        Written by `spend.lua` when scans and checks are stored; read by the seeder, `trawl forums` and the exporter.
        """
        return f"{self.prefix}:spent:{site}"

    def budgets(self) -> str:
        """HASH: requests that each site may be sent in an hour (site -> number).

        Written by the seeder from the site files; read by the exporter.
        """
        return f"{self.prefix}:budgets"

    def counted(self, site: str) -> str:
        """ZSET with TTL: scans and checks whose requests are in the hash before (score = their end, epoch s), so that none
        counts twice; of the last hours.

        Written and read by `spend.lua`.
        """
        return f"{self.prefix}:spent:{site}:counted"


def document() -> str:
    """The part of `docs/redis-keys.md` that speaks of forums."""
    crawl = ForumCrawlKeys(CrawlKeys.for_spider("<spider>", namespace=""))
    found = [
        *rows(crawl, ForumCrawlKeys, {}),
        *rows(ForumFleetKeys(prefix="trawl:fleet"), ForumFleetKeys, {"site": "<site>", "output": "<output>"}),
    ]
    return "\n## Keys of the forum application\n\n" + HEAD + "\n".join(found) + "\n"


if __name__ == "__main__":
    print(document(), end="")
