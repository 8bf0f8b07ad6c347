"""Every Redis key that Trawl uses: one method per key, with its type, who writes it and who reads it.

No key is built anywhere else. `docs/redis-keys.md` is generated from these docstrings (`python -m redis_components.keys`)
and a test compares the two. The first line of each docstring is `TYPE: content`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from . import defaults
from .errors import ConfigError
from .namespace import fleet_namespace, prefixed


def filled(pattern: str, spider: str) -> str:
    """The key of `spider` by `pattern`. Raises ConfigError."""
    try:
        return pattern % {"spider": spider, "name": spider}
    except (TypeError, KeyError, ValueError) as exc:
        raise ConfigError(
            f"the key pattern {pattern!r} is wrong ({type(exc).__name__}: {exc}):"
            " write %(name)s for the spider's name, %% for a percent sign, and no other %"
        ) from exc


@dataclass(frozen=True, kw_only=True)
class CrawlKeys:
    """The keys of one spider's crawl. The five patterns are scrapy-redis's; each auxiliary key starts with the key it serves.

    The namespace comes before every pattern. For Redis Cluster it is a hash tag, as in `{job42}:forum:requests`.
    """

    requests: str
    dupefilter: str
    start_urls: str
    items: str
    stats: str
    custom_queue: bool = False
    """`requests` belongs to a queue class of the user's; READY requests are beside it."""
    custom_dupefilter: bool = False
    """`dupefilter` belongs to a dupefilter class of the user's; notes of what it was asked about are beside it."""
    more_start_urls: tuple[str, ...] = ()
    """Further start keys of a spider that reads several, in falling urgency; `start_urls` is the most urgent one."""

    @classmethod
    def for_spider(
        cls,
        spider: str,
        *,
        namespace: str | None = None,
        requests: str = defaults.SCHEDULER_QUEUE_KEY,
        dupefilter: str = defaults.SCHEDULER_DUPEFILTER_KEY,
        start_urls: str | Sequence[str] = defaults.START_URLS_KEY,
        items: str = defaults.PIPELINE_KEY,
        stats: str = defaults.STATS_KEY,
    ) -> CrawlKeys:
        """The keys for the spider named `spider`; patterns may hold `%(spider)s` or `%(name)s`. Of several start keys the most
        urgent one stands first.

        `namespace` is that of the fleet and the tools (TRAWL_NAMESPACE) where none is given; "" is none. Raises ConfigError.
        """
        within = fleet_namespace() if namespace is None else namespace
        first, *more = [start_urls] if isinstance(start_urls, str) else start_urls
        return cls(
            requests=prefixed(filled(requests, spider), within),
            dupefilter=prefixed(filled(dupefilter, spider), within),
            start_urls=prefixed(filled(first, spider), within),
            items=prefixed(filled(items, spider), within),
            stats=prefixed(filled(stats, spider), within),
            more_start_urls=tuple(prefixed(filled(key, spider), within) for key in more),
        )

    def ready(self) -> str:
        """ZSET: READY requests. Score = -priority (0 for FIFO, LIFO and random), member = 8 bytes of order, 1 byte of
        attempts, payload.

        Written and read by `exchange.lua`; written too by `dead_replay.lua` and by a queue class that is used alone; its size is
        read by the inspector.
        """
        return self.ready_aside() if self.custom_queue else self.requests

    def ready_aside(self) -> str:
        """ZSET: READY requests where a queue class of the user's own has the key before.

        Written and read as that key; `custom_queue` in the counters tells where they are.
        """
        return f"{self.requests}:ready"

    def fingerprints(self) -> str:
        """SET, HASH: fingerprints of all requests ever stored through the dupefilter, as raw bytes; for a dupefilter other than
        the plain set a hash of its kind and its parts (`lua/lib/filter_state.lua`).

        Written and read by `exchange.lua`, and by a dupefilter that is used alone; its size is read by the inspector.
        """
        return self.notes() if self.custom_dupefilter else self.dupefilter

    def notes(self) -> str:
        """HASH: requests that a dupefilter class of the user's was asked about and that are not stored yet (fingerprint ->
        owner, behind a `!` where one before it died), so that its "seen" cannot swallow what a killed process did not store.

        Written by `note.lua`; read by it and by `exchange.lua`, which removes a note in the step that stores its request.
        """
        return f"{self.dupefilter}:notes"

    def fingerprint_part(self, part: str, number: int | str) -> str:
        """SET, STRING: entries of a dupefilter other than the plain set, as integers in buckets, or bits of a Bloom filter in
        pieces of 32 KiB (or a filter of RedisBloom). The part is named by the time of its making in ms, in base 36.

        Written and read as the key before; sampled by `trawl dupefilter`.
        """
        return f"{self.dupefilter}:{part}:{number}"

    def forgotten(self) -> str:
        """STRING with TTL: time at which single requests were last removed from the dupefilter (Redis, ms), kept for a day.

        Written by `dupefilter_forget.lua`; read by `exchange.lua`, which tells crawlers that remember what they met.
        """
        return f"{self.dupefilter}:forgotten"

    def leases(self, owner: str) -> str:
        """HASH: LEASED requests and start tasks of one crawler process. Field = lease id `<exchange>.<n>`, value =
        `<kind><score>|<member>`; before the member of a start task `<bytes>|<key>`, the key that it came from.

        Written and read by `exchange.lua`; moved back by whoever reclaims a dead owner.
        """
        return f"{self.requests}:leases:{owner}"

    def owners(self) -> str:
        """ZSET: crawler processes that hold or may hold leases. Score = time (Redis, ms) at which the owner counts as dead.

        Written by `exchange.lua`, `heartbeat.lua` and `expire_owner.lua`; read by the inspector.
        """
        return f"{self.requests}:owners"

    def numbers(self) -> str:
        """HASH: last exchange applied for each owner, so that a repeated one is not applied again: its number `|` the places of
        the duplicates found in it `|` the leases that were overtaken in the owner's buffer `|` its concurrency.

        Written and read by `exchange.lua`.
        """
        return f"{self.requests}:numbers"

    def gone(self, owner: str) -> str:
        """STRING with TTL: number of the last exchange of an owner that was taken for dead or said good-bye, for a day, should it
        come back.

        Written and read by `exchange.lua`.
        """
        return f"{self.requests}:gone:{owner}"

    def counters(self) -> str:
        """HASH: `layout` (version), `order` (last order number given), `leased` (requests), `leased_tasks` (start tasks),
        `acked`, `reclaimed`, `parked` and `parked_tasks` (set aside for a site that is held), `custom_queue` (1: a queue class of
        the user's has the key of READY).

        Written by `exchange.lua`, `order` by `dead_replay.lua` and a queue class used alone, too; read by the inspector.
        """
        return f"{self.requests}:counters"

    def dead(self) -> str:
        """LIST: DEAD requests and start tasks, as one line of JSON (`at_ms`, `kind`, `reason`, `score`, of a start task
        `key`) and the payload; kept until replayed or purged.

        Written by `exchange.lua`; read by the inspector and by `trawl dead`, which takes them out by `dead_replay.lua` and
        `dead_purge.lua`.
        """
        return f"{self.requests}:dead"

    def holds(self) -> str:
        """HASH: what an operator holds (`spider`, `site:<name>`, and for the whole fleet `fleet`, `fleet:site:<name>`), and the
        breaker of a site (`fleet:breaker:<site>`) -> JSON with word, at, by, reason; and `version`, another one after each
        change. Kept when the crawl's keys are removed.

        Written by `hold.lua`; read by `exchange.lua`, which tells a crawler that knows another version, and by `trawl status`.
        """
        return f"{self.requests}:holds"

    def parked(self) -> str:
        """HASH: how many entries each lot of parked requests or start tasks has (`requests:<site>`, `tasks:<site>` -> number).

        Written by `exchange.lua`; read by it, and when a queue is deleted.
        """
        return f"{self.requests}:parked"

    def parked_lot(self, lot: str) -> str:
        """LIST: requests, or start tasks, of a site that is held, oldest first; each as its lease was: `<kind><score>|<member>`.

        Written and read by `exchange.lua`, which puts them back when the site is not held any more.
        """
        return f"{self.requests}:parked:{lot}"

    def foreign_requests(self) -> str:
        """ZSET or LIST: requests of scrapy-redis that wait to be imported, as it stored them.

        Written and read by `trawl migrate scrapy-redis` (`set_aside.lua`, `import_requests.lua`).
        """
        return f"{self.requests}:scrapy-redis"

    def foreign_fingerprints(self) -> str:
        """SET: fingerprints of scrapy-redis (40 hex digits) that wait to be imported.

        Written and read by `trawl migrate scrapy-redis` (`set_aside.lua`).
        """
        return f"{self.dupefilter}:scrapy-redis"

    def start_tasks(self) -> str:
        """LIST, SET or ZSET: start tasks (JSON) that wait for a crawler; which type is the user's choice. Where a spider reads
        several keys, this is the most urgent one, and the others are used alike.

        Written by `seed.lua`, by `exchange.lua` of the service before, by `dead_replay.lua`, or by users; read by `exchange.lua`.
        """
        return self.start_urls

    def start_deaths(self) -> str:
        """HASH with TTL: how many crawlers died while they held a start task (SHA-1 of the task in hex -> deaths); at most
        10,000, forgotten a day after the last death.

        Written and read by `exchange.lua`.
        """
        return f"{self.start_urls}:deaths"

    def start_tokens(self) -> str:
        """HASH: last change token of each start task that another service made (task id -> token), so that an unchanged thread
        makes no second task. At most 2,000,000; above that, random ones go.

        Written and read by `exchange.lua` of the service before; removed by `remember.lua` when the thread's record takes its
        place.
        """
        return f"{self.start_urls}:tokens"

    def later_tasks(self) -> str:
        """LIST: start tasks that may wait (re-checks, backfill): taken when `start_tasks` has none.

        Written by `recheck_threads`; read by `exchange.lua` of a spider with `lane_later`.
        """
        return f"{self.start_urls}:later"

    def turns(self) -> str:
        """ZSET: start tasks that wait for the turn of their site, of a spider with `turn_by` (score 0, member = site, NUL, 8
        bytes of order, task). Each start key has one.

        Written and read by `exchange.lua`, which sorts the start key into it.
        """
        return f"{self.start_urls}:turns"

    def later_turns(self) -> str:
        """ZSET: likewise those of `later_tasks`.

        Written and read by `exchange.lua`.
        """
        return f"{self.later_tasks()}:turns"

    @property
    def turn_keys(self) -> tuple[str, ...]:
        """`turns` of each start key, in their order."""
        return tuple(f"{key}:turns" for key in (self.start_urls, *self.more_start_urls))

    def backlog(self) -> str:
        """LIST: start tasks of a backfill that wait until the site's budget has room for them.

        Written by `exchange.lua` of the service before; moved into `later_tasks` by `recheck_threads` (`move_later.lua`).
        """
        return f"{self.start_urls}:backlog"

    def threads(self) -> str:
        """HASH: what is stored of each thread (`<site>/<thread>` -> msgpack: change token, comments, last page or 0 if it was
        gone, id of the last comment, cursor, hour of the last reading, comments as the list counts them, readings that saw fewer
        than it claims), by which a scan tells new, changed and unchanged threads apart. Bounded by TRAWL_THREAD_RECORDS: then of
        a few random ones the oldest goes.

        Written by the writer's hook (`remember.lua`), removed by `trawl forget`; read by the spider `forum_list`.
        """
        return f"{self.start_urls}:threads"

    def marks(self) -> str:
        """HASH: how far the complete scans of each forum have come (`<site>/<forum>` -> JSON): down to where the next one reads,
        and the first page of its list, with which it compares.

        Written by the writer's hook, removed by `trawl forget`; read by the spider `forum_list`.
        """
        return f"{self.start_urls}:marks"

    def pending(self) -> str:
        """HASH: seeded start tasks whose scan has not ended (task id -> time of seeding, Redis, ms).

        Written by `seed.lua`; cleared by `settle.lua` when the scan's report is stored.
        """
        return f"{self.start_urls}:pending"

    def seeded(self) -> str:
        """HASH: time of the last seeding of each start task (task id -> Redis, ms), from which the due ones are found.

        Written by `seed.lua`; read by the seeder.
        """
        return f"{self.start_urls}:seeded"

    def forum_states(self) -> str:
        """HASH: what the policy of freshness knows of each forum (`<site>/<forum>` -> JSON of `forum_states.py`), also of those
        that an index page named; `<site>/*` is the index page itself.

        Written by `store_items` after the commit; read by the seeder, `trawl forums` and the exporter.
        """
        return f"{self.start_urls}:forums"

    def forum_dues(self) -> str:
        """HASH: when each forum is due by that policy (`<site>/<forum>` -> epoch seconds, Redis).

        Written by the seeder; read by `trawl forums` and the exporter: a time that lies far behind is a board that went stale.
        """
        return f"{self.start_urls}:dues"

    def item_stream(self) -> str:
        """LIST: scraped items as JSON, oldest first. Where a pipeline overrides `item_key`, its lists are written alike.

        Written by `exchange.lua`; read in place and trimmed after the commit by the writer (`settle.lua`).
        """
        return self.items

    def writer(self) -> str:
        """STRING with TTL: `<token>|<number of its last settled batch>` of the one writer that may trim the item stream.

        Written by `writer_lock.lua`, `writer_unlock.lua` and `settle.lua`, which checks it first.
        """
        return f"{self.items}:writer"

    def bad_items(self) -> str:
        """LIST: items that the database refused, newest first, as JSON `{"reason", "item", "at"}` (epoch seconds of Redis, the
        item's first 100,000 characters); the newest 10,000 are kept.

        Written by `settle.lua`; read by people and by the inspector.
        """
        return f"{self.items}:dead"

    def stats_hash(self) -> str:
        """HASH: Scrapy's stats over all processes: sums, maxima, minima.

        Written by `exchange.lua`; read by the exporter and the inspector.
        """
        return self.stats

    def own_stats(self, owner: str) -> str:
        """HASH with TTL: the stats that are one process's own (start time, finish reason, ...), kept for a day after its last
        change.

        Written by `exchange.lua`; read by people.
        """
        return f"{self.stats}:{owner}"


@dataclass(frozen=True, kw_only=True)
class FleetKeys:
    """The keys by which Celery workers, crawlers and operators agree on the fleet of one namespace."""

    prefix: str = field(default_factory=lambda: prefixed("trawl:fleet", fleet_namespace()))

    def desired(self) -> str:
        """HASH: desired number of crawlers (spider -> integer).

        Written by `trawl scale` and the task `scale_fleet`; read by `reconcile_fleet`.
        """
        return f"{self.prefix}:desired"

    def slot(self, spider: str, number: int) -> str:
        """STRING with TTL: `<token>|<owner>` of the process that holds this crawler slot.

        Written by `slot_acquire.lua`, `slot_renew.lua`, `slot_release.lua`; read by the registry.
        """
        return f"{self.prefix}:slot:{spider}/{number}"

    def fences(self) -> str:
        """HASH: highest fencing token handed out for each slot (`spider/number` -> token), so that an old holder cannot come
        back; field `beat`: that of the beats.

        Written and read by the slot scripts and `beat_lead.lua`.
        """
        return f"{self.prefix}:fences"

    def crawlers(self) -> str:
        """HASH: last heartbeat of each crawler (`spider/number` -> JSON with pid, node, state, figures, time).

        Written by the crawler process and its supervisor; read by the registry, `trawl status` and the exporter, and by
        `slot_acquire.lua`: a slot whose key was deleted is held while its holder is heard.
        """
        return f"{self.prefix}:crawlers"

    def launch(self, spider: str, number: int) -> str:
        """STRING with TTL: the node that a launch of this slot is on its way to; no second one is sent meanwhile.

        Written by `reconcile_fleet` (`launch_mark.lua`); removed by `run_crawler`.
        """
        return f"{self.prefix}:launch:{spider}/{number}"

    def nodes(self) -> str:
        """HASH: last heartbeat of each node (its name -> JSON with services, capacity, crawlers, configuration, time).

        Written by each worker's main process (`node_beat.lua`); read by `reconcile_fleet`, `trawl nodes` and the exporter.
        """
        return f"{self.prefix}:nodes"

    def drained_nodes(self) -> str:
        """HASH: nodes that take no crawlers until somebody says otherwise (name -> epoch seconds when they were last heard).

        Written by `trawl drain --node` (`node_drain.lua`) and `node_beat.lua`; read by `reconcile_fleet` and the nodes.
        """
        return f"{self.prefix}:nodes:drained"

    def roll(self) -> str:
        """HASH: the present or last replacement of crawlers by fresh processes (`roll` -> JSON).

        Written by `trawl roll`, the task `roll_fleet` and `reconcile_fleet` (`swap.lua`); read by these and `trawl status`.
        """
        return f"{self.prefix}:roll"

    def autoscale(self) -> str:
        """HASH: services that size themselves (spider -> JSON with the policy, and what the last decisions were made of).

        Written by `trawl autoscale` and `reconcile_fleet` (`swap.lua`); read by these and `trawl scale`.
        """
        return f"{self.prefix}:autoscale"

    def holds(self) -> str:
        """HASH: what an operator, or the breaker of a site, holds in the whole fleet, also in services that come later (`fleet`,
        `site:<name>`, `breaker:<site>`, `service:<spider>`, `slot:<spider>/<number>` -> JSON with word, at, by, reason).

        Written by `trawl pause`, `drain`, `stop`, `resume` and their tasks, by crawlers and `probe_sites`; read by
        `reconcile_fleet` and `trawl status`.
        """
        return f"{self.prefix}:holds"

    def breakers(self) -> str:
        """HASH: breaker of each site that did not answer with pages of its own (site -> JSON with state, cause, reason, since,
        next probe, evidence); closed ones are kept for a day.

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

    def probing(self) -> str:
        """STRING with TTL: the one process that probes sites now.

        Written and read by `probe_sites`.
        """
        return f"{self.prefix}:probing"

    def drift(self) -> str:
        """HASH: what pages of each site usually have (`<site>/<kind of page>` -> JSON with the last lots of pages, and what has
        drifted from them); as many as there are site files, times four.

        Written by `probe_sites`; read by it, by `trawl status` and the exporter.
        """
        return f"{self.prefix}:drift"

    def beat_leader(self) -> str:
        """STRING with TTL: `<token>|<owner>` of the one beat that sends; the token's fence is the field `beat` of the fences.

        Written by `beat_lead.lua` and `beat_resign.lua`; read by `beat_note.lua`, `trawl status` and the exporter.
        """
        return f"{self.prefix}:beat_leader"

    def beats(self) -> str:
        """ZSET with TTL: every beat process, the one that leads and those that wait. Score = its last word (Redis, ms).

        Written by `beat_lead.lua` and `beat_resign.lua`; read by `trawl status`.
        """
        return f"{self.prefix}:beats"

    def beat_runs(self) -> str:
        """HASH: last round of each scheduled task (entry -> `<due, ms>|<last sending, ms>|<seen, due or sent>`).

        Written by `beat_note.lua`; read by the beat that leads next, `trawl schedule`, `trawl status` and the exporter.
        """
        return f"{self.prefix}:beat_runs"

    def beat_begun(self) -> str:
        """HASH: last round of each scheduled task that a worker has begun (entry -> `<token>|<due, ms>`), so that none is begun
        twice.

        Written and read by `beat_begin.lua`.
        """
        return f"{self.prefix}:beat_begun"

    def schedule(self) -> str:
        """HASH: scheduled tasks as they were changed or added while the fleet runs (entry -> JSON), over those of
        `celeryconfig.py`; at most 1,000.

        Written by `trawl schedule`; read by the beat that leads.
        """
        return f"{self.prefix}:schedule"

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

    def errors(self) -> str:
        """LIST: last errors of the fleet as JSON `{"at", "where", "what", "times"}`, newest first, at most 100.

        Written by supervisor, seeder and writer; read by `trawl status`.
        """
        return f"{self.prefix}:errors"

    def runs(self) -> str:
        """LIST: crawler processes that have begun or ended, as JSON, oldest first, at most 10,000.

        Written by supervisors, by crawlers without one and by `crawl_once`; moved into the database by `store_items`.
        """
        return f"{self.prefix}:runs"

    def cancelled(self, task_id: str) -> str:
        """STRING with TTL: this `crawl_once` shall stop.

        Written by `cancel_crawl`; read by `crawl_once`.
        """
        return f"{self.prefix}:cancelled:{task_id}"

    def orders(self) -> str:
        """HASH: what the holder of a slot shall do (`spider/number` -> `<token>|<word>|<reason>`); it counts for that token only.

        Written by `reconcile_fleet`; read by `slot_renew.lua`; removed by `slot_acquire.lua` and `slot_release.lua`.
        """
        return f"{self.prefix}:orders"


def document() -> str:
    """`docs/redis-keys.md`: every key above as a Markdown table."""
    crawl = CrawlKeys.for_spider("<spider>", namespace="")
    rows = []
    for keys, samples in (
        (crawl, {"owner": "<owner>", "part": "<part>", "number": "<number>", "lot": "<lot>"}),
        (FleetKeys(prefix="trawl:fleet"), {"spider": "<spider>", "number": "<number>", "task_id": "<task id>", "site": "<site>"}),
    ):
        for name, method in vars(type(keys)).items():
            if name.startswith("_") or name == "for_spider" or not callable(method):
                continue
            params = method.__code__.co_varnames[1 : method.__code__.co_argcount]
            doc = " ".join(line.strip() for line in (method.__doc__ or "").splitlines() if line.strip())
            kind, _, text = doc.partition(": ")
            rows.append(f"| `{method(keys, *(samples[p] for p in params))}` | {kind} | {text.replace('|', chr(92) + '|')} |")
    head = "# Redis keys\n\nGenerated from `redis_components/keys.py` by `python -m redis_components.keys`; do not edit.\n\n"
    head += "With a namespace (`REDIS_NAMESPACE`, `TRAWL_NAMESPACE`) every key begins with it and a colon.\n\n"
    return head + "| key | type | content, writers, readers |\n|---|---|---|\n" + "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(document(), end="")
