"""The keys that only exchanges write: requests with their limits, and start tasks that one service makes for another."""

from __future__ import annotations

from dataclasses import dataclass


def lane_state_key(limits: str, lane: str) -> str:
    """Return the key of `CrawlKeys.lane_state` for the lanes of `limits`, also where no crawl is at hand."""
    return f"{limits}:{lane}"


def lane_busy_key(limits: str, lane: str) -> str:
    """Return the key of `CrawlKeys.lane_busy`."""
    return f"{limits}:{lane}:busy"


@dataclass(frozen=True, kw_only=True)
class FrontierKeys:
    """Requests, and the limits by which they are leased. Part of `CrawlKeys`; each auxiliary key begins with its main key."""

    requests: str
    dupefilter: str
    limits: str = ""
    """Key of the limits of lanes, the same one for all crawls of a namespace. With a hash tag in the patterns, and no namespace,
    each crawl has its own: a script reaches one slot of a cluster only.
    """
    custom_queue: bool = False
    """`requests` belongs to a queue class of the user's; READY requests are in `ready_aside`."""
    custom_dupefilter: bool = False
    """`dupefilter` belongs to a dupefilter class of the user's; what it was asked about is in `notes`."""

    def ready(self) -> str:
        """ZSET: READY requests. Score = -priority (0 for FIFO, LIFO and random), member = 8 bytes of order, 1 byte of
        attempts, payload.

        Written and read by `exchange.lua`; written too by `dead_replay.lua` and by a queue class that is used alone; its size is
        read by the inspector.
        """
        return self.ready_aside() if self.custom_queue else self.requests

    def ready_aside(self) -> str:
        """ZSET: READY requests where a queue class of the user's own has the key before.

        Written and read as that key; `custom_queue` in the counters names its place.
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

        Written and read as the key before.
        """
        return f"{self.dupefilter}:{part}:{number}"

    def leases(self, owner: str) -> str:
        """HASH: LEASED requests and start tasks of one crawler process. Field = lease id `<exchange>.<n>` (the number of an
        exchange is about its time, in ms), value = `<kind><score>|<member>`; before the member of a start task `<bytes>|<key>`,
        the key that it came from.

        Written and read by `exchange.lua`; moved back by `expire_owner.lua` and `exchange.lua` when the owner is dead.
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
        """STRING with TTL: number of the last exchange of an owner that was taken for dead, for a day, should it come back; of
        one that left in order for an hour, should a message of it come late.

        Written and read by `exchange.lua`.
        """
        return f"{self.requests}:gone:{owner}"

    def counters(self) -> str:
        """HASH: `layout` (version), `order` (last order number given, in µs of Redis), `leased` (requests), `leased_tasks` (start
        tasks), `acked`, `reclaimed`, `parked` and `parked_tasks` (set aside for a site that is held), `custom_queue` (1: a queue
        class of the user's has the key of READY).

        Written by `exchange.lua`, `order` by `dead_replay.lua` and a queue class used alone, too; read by the inspector.
        """
        return f"{self.requests}:counters"

    def lanes(self) -> str:
        """ZSET: lanes (sites with limits) that hold requests. Score = time (Redis, ms) from which one may be leased; the member
        `\\1later` stands for requests that carry a time.

        Written and read by `exchange.lua` (`lib/lanes.lua`); read by the inspector.
        """
        return f"{self.ready()}:lanes"

    def lane(self, lane: str) -> str:
        """ZSET: READY requests of one lane; members and scores as in READY.

        Written and read by `exchange.lua`; its size is read by the inspector.
        """
        return f"{self.ready()}:lane:{lane}"

    def later_requests(self) -> str:
        """ZSET: requests that carry a time before which they are not leased (`meta["not_before"]`). Score = that time (Redis,
        ms), member = `<score>@<lane>|<member>`.

        Written and read by `exchange.lua`, which moves due ones to READY or their lane.
        """
        return f"{self.ready()}:later"

    def all_limits(self) -> str:
        """HASH: limits of lanes (site or domain -> JSON with rate, burst, concurrency, weight, quotas, quiet hours, by), of all
        crawls of the namespace; and `version`, another one after each change.

        Written by `trawl limit` and by `exchange.lua`, where a site asked to be left alone; read by `exchange.lua`.
        """
        return self.limits

    def lane_state(self, lane: str) -> str:
        """HASH with TTL: the leased requests of a lane: `tat` (token bucket, ms), `times` of the last requests with their
        distance `apart` and `base` (`tat` before them), `until` (ms before which nothing is sent), `step` and `asked` of the
        last wait, `quotas`
        (windows, ms), `refusals` since `refused_since`, `slowed` (1/s, with `slowed_at`, `slowed_top` and
        `slowed_return`), `robots_rate` (1/s, with `robots_of` and `robots_at`), `<window, ms>:<bucket>` -> requests.

        Written and read by `exchange.lua`, the rate by `robots_store.lua`; read by `trawl limit`.
        """
        return lane_state_key(self.limits, lane)

    def older_limits(self) -> str:
        """STRING with TTL: when Redis was seen to have come back with an older state (ms): up to a second of what was sent is not
        in it, so lanes wait.

        Written and read by `exchange.lua` (`lib/pacing.lua`).
        """
        return f"{self.limits}#older"

    def lane_busy(self, lane: str) -> str:
        """ZSET with TTL: leases of a lane that has a limit of concurrency. Score = time (Redis, ms) at which one is forgotten.

        Written and read by `exchange.lua`; read by `trawl limit`.
        """
        return lane_busy_key(self.limits, lane)

    def lane_turns(self, lane: str) -> str:
        """HASH with TTL: crawls that have requests for one lane -> since when each waits for its turn and when it asked (ms).

        Written and read by `exchange.lua` and `lane_permit.lua` (`lib/pacing.lua`).
        """
        return f"{lane_state_key(self.limits, lane)}:turns"

    def robots(self) -> str:
        """ZSET: origins (scheme, host, port) whose robots.txt is kept, for all crawls of the namespace. Score = time (Redis, ms)
        at which it was fetched; at most 20,000, and 64 MiB in all.

        Written and read by `robots_store.lua`.
        """
        return f"{self.limits.removesuffix(':limits')}:robots"

    def robots_file(self, origin: str) -> str:
        """HASH: robots.txt of one origin (`kind`, `body` compressed, `version`, `etag`, `modified`, `rate`, `until`), and the
        process that fetches it now (`claim`).

        Written by `robots_ask.lua` and `robots_store.lua`; read by crawlers, each file twice a minute while its site is crawled.
        """
        return f"{self.robots()}:{origin}"

    def robots_bytes(self) -> str:
        """STRING: bytes of all these files.

        Written and read by `robots_store.lua`.
        """
        return f"{self.robots()}-bytes"

    def dead(self) -> str:
        """LIST: DEAD requests and start tasks, as one line of JSON (`at_ms`, `kind`, `reason`, `score`, of a start task
        `key`) and the payload; kept until replayed or purged.

        Written by `exchange.lua`; read by the inspector and by `trawl dead`, which takes them out by `dead_replay.lua` and
        `dead_purge.lua`.
        """
        return f"{self.requests}:dead"

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


@dataclass(frozen=True, kw_only=True)
class FedTaskKeys:
    """The start key to which another service feeds, and those that begin with it. Part of `StartTaskKeys`."""

    start_urls: str
    fed_start_urls: str = ""
    """The start key to which another service feeds, where the spider reads others; "": `start_urls`."""

    @property
    def fed_tasks(self) -> str:
        """The start key to which another service feeds: `start_tasks`, unless the spider reads other keys."""
        return self.fed_start_urls or self.start_urls

    @property
    def fed_turns(self) -> str:
        """Of these, those that wait for the turn of their site."""
        return f"{self.fed_tasks}:turns"

    def fed_waiting(self) -> str:
        """HASH: newest form of each start task that another service made and that waits in `fed_tasks` (task id -> msgpack array:
        1 if it is wide, time since which it waits in ms, order of its making, text), so that one waits for each id, and a
        crawler gets what is newest. The start key shows each as it was first made.

        Written by `exchange.lua` of the service before and by `push_tasks.lua`; read and removed by `exchange.lua` when it leases
        the task, and removed when the start key is found empty.
        """
        return f"{self.fed_tasks}:waiting"

    def fed_ids(self) -> str:
        """HASH: task id of each start task that another service made, as long as it waits, is leased or is parked (SHA-1 of its
        text -> 1 if it is wide, else 0 `|` how many have that text `|` order of its making `|` the id; `made` -> order of
        the last one made).

        Written and read by `exchange.lua` of both services and by `push_tasks.lua`.
        """
        return f"{self.fed_tasks}:ids"

    def overflow(self) -> str:
        """HASH: start tasks that another service made while as many waited for their site as may (SCHEDULER_MAX_FED_TASKS): one
        for each task id, the newest (task id -> msgpack array: 1 if it is wide, order of its making, text).

        Written by `exchange.lua` of the service before; moved into `fed_tasks` by `exchange.lua` when there is capacity.
        """
        return f"{self.fed_tasks}:overflow"

    def overflow_order(self) -> str:
        """ZSET: order of these within their site (score 0, member = site, NUL, 8 bytes of order, task id).

        Written and read as the key before.
        """
        return f"{self.overflow()}:order"
