"""The keys of one spider's start tasks and items, and the key of a namespace by which crawls are found from outside."""

from __future__ import annotations

from dataclasses import dataclass, field

from redis_components.server.names import fleet_namespace, prefixed


@dataclass(frozen=True, kw_only=True)
class NamespaceKeys:
    """Keys of one namespace; a fleet has more (`workers/state/keys.py`)."""

    prefix: str = field(default_factory=lambda: prefixed("trawl:fleet", fleet_namespace()))

    def crawls(self) -> str:
        """HASH: where the crawl of each service is (spider -> JSON with its keys, its Redis where that is not the fleet's, the
        consumer and the bounds of its items), also after its crawlers have ended.

        Written by crawlers when they begin; read by the writer and by everything that looks at a crawl from outside.
        """
        return f"{self.prefix}:crawls"


@dataclass(frozen=True, kw_only=True)
class StartTaskKeys:
    """The start keys, and those that begin with one of them. Part of `CrawlKeys`."""

    start_urls: str
    more_start_urls: tuple[str, ...] = ()
    """Further start keys of a spider that reads several, in falling urgency; `start_urls` is the most urgent one."""
    fed_start_urls: str = ""
    """The start key to which another service feeds, where the spider reads others; "": `start_urls`."""

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
        """ZSET: the same for `later_tasks`.

        Written and read by `exchange.lua`.
        """
        return f"{self.later_tasks()}:turns"

    @property
    def turn_keys(self) -> tuple[str, ...]:
        """`turns` of each start key, in their order."""
        return tuple(f"{key}:turns" for key in (self.start_urls, *self.more_start_urls))

    @property
    def more_task_keys(self) -> list[str]:
        """Every key with start tasks that wait, without `start_tasks`."""
        return list(dict.fromkeys((*self.more_start_urls, self.later_tasks(), *self.turn_keys, self.later_turns())))

    def backlog(self) -> str:
        """LIST: start tasks of a backfill that wait until the site's budget has room for them.

        Written by `exchange.lua` of the service before; moved into `later_tasks` by `recheck_threads` (`move_later.lua`).
        """
        return f"{self.start_urls}:backlog"

    def threads(self) -> str:
        """HASH: records of stored threads (`<site>/<thread>` -> msgpack: change token, comments, last page or 0 if it was gone,
        id of the last comment, cursor, hour of the last reading, comments as the list counts them, readings that saw fewer than
        it claims), by which a scan finds new, changed and unchanged threads. Bounded by TRAWL_THREAD_RECORDS: then of a few
        random ones the oldest goes.

        Written by the writer's hook (`remember.lua`), removed by `trawl forums forget`; read by the spider `forum_list`.
        """
        return f"{self.start_urls}:threads"

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


@dataclass(frozen=True, kw_only=True)
class ItemKeys:
    """The item stream, and the keys that begin with it. Part of `CrawlKeys`."""

    items: str

    def item_stream(self) -> str:
        """LIST: scraped items as JSON, oldest first. Where a pipeline overrides `item_key`, its lists are written alike.

        Written by `exchange.lua` and `items_replay.lua`. A user's consumer pops them; where the service declares the forum
        writer as its consumer, that alone reads them in place and trims them after the commit (`settle.lua`).
        """
        return self.items

    def writer(self) -> str:
        """STRING with TTL: `<token>|<number of its last settled batch>` of the one writer that may trim the item stream.

        Written by `writer_lock.lua`, `writer_unlock.lua`, and `settle.lua`, which checks it first.
        """
        return f"{self.items}:writer"

    def item_part(self) -> str:
        """STRING: what the consumer is about to write as one part (JSON: name, count, digest).

        Written by `part_note.lua`, read by the next consumer; removed by `settle.lua`.
        """
        return f"{self.items}:part"

    def bad_items(self) -> str:
        """LIST: items that their consumer refused, newest last, as one line of JSON (`at`, epoch seconds of Redis, and `reason`)
        and the item; kept until replayed or purged. They count with those that wait towards REDIS_ITEMS_MAX_WAITING.

        Written by `settle.lua`; read by the inspector, `exchange.lua` and `trawl dead items`, which takes
        them out by `items_replay.lua` and `dead_purge.lua`.
        """
        return f"{self.items}:dead"
