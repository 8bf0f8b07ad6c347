"""Redis keys of the fleet: one method per key, as in `redis_components/keys/`."""

from __future__ import annotations

import inspect
from pathlib import Path

from redis_components.keys import NamespaceKeys
from redis_components.server import scripts

MOST_WAITING = 10_000
"""Entries of `runs` and `ended_members`: without a writer the oldest are dropped."""


class FleetKeys(NamespaceKeys):
    """The keys by which Celery workers, crawlers and operators agree on the fleet of one namespace."""

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
        `slot_acquire.lua`: a slot whose key was deleted is held while its holder sends heartbeats.
        """
        return f"{self.prefix}:crawlers"

    def services(self) -> str:
        """HASH: services that were declared at run time (name -> JSON with spider, project, size, arguments, settings), over
        those of the file and of TRAWL_FLEET.

        Written by `trawl services add` and `remove`; read by nodes, supervisors and `reconcile_fleet`.
        """
        return f"{self.prefix}:services"

    def jobs(self) -> str:
        """HASH: finite crawls (id -> JSON with service, arguments, crawlers, state, reason, figures), those that are over for
        TRAWL_JOB_RETENTION_S.

        Written by `trawl job start`, `trawl job`, the task `crawl` and `reconcile_fleet` (`swap.lua`); read by these, nodes and
        supervisors.
        """
        return f"{self.prefix}:jobs"

    def job_ends(self, job: str) -> str:
        """HASH: the crawlers of a job that came to the end of the crawl (number of the slot -> finish reason of Scrapy).

        Written by supervisors; read and removed by `reconcile_fleet`.
        """
        return f"{self.prefix}:job_ends:{job}"

    def starting(self, service: str) -> str:
        """STRING: lock of a process that starts a job of a service, or a run of a group (`group:NAME`), where only one may go on.

        Written by `trawl job start`, `trawl run`, and the tasks `crawl` and `run_group`; it expires after 30 s.
        """
        return f"{self.prefix}:starting:{service}"

    def expiring(self) -> str:
        """HASH: crawls of jobs that are over, whose keys do not expire yet (beginning of their names -> seconds).

        Written by supervisors and `reconcile_fleet`, which lets them expire and removes the field.
        """
        return f"{self.prefix}:expiring"

    def group_runs(self) -> str:
        """HASH: runs of groups (id -> JSON with group, state, deadline, counts by verdict).

        Written by `trawl run`, the task `run_group` and `reconcile_fleet` (`swap.lua`); read by these.
        """
        return f"{self.prefix}:group_runs"

    def run_waiting(self, run: str) -> str:
        """ZSET: members of a run that have not begun (spider -> place in the order).

        Written by `trawl run` and `reconcile_fleet`.
        """
        return f"{self.prefix}:group_run:{run}:waiting"

    def run_modules(self, run: str) -> str:
        """HASH: modules of a run's spiders (spider -> module), each the only one that its crawlers import.

        Written by `trawl run` and the task `run_group`; read by `reconcile_fleet`.
        """
        return f"{self.prefix}:group_run:{run}:modules"

    def run_crawling(self, run: str) -> str:
        """HASH: members of a run that crawl (spider -> time of the start). Written by `reconcile_fleet`."""
        return f"{self.prefix}:group_run:{run}:crawling"

    def run_members(self, run: str) -> str:
        """HASH: outcomes of a run's members (spider -> JSON with verdict, reason, figures). Written by `reconcile_fleet`."""
        return f"{self.prefix}:group_run:{run}:members"

    def run_items(self, run: str) -> str:
        """LIST: items of all members of a run with files, each with its member's name, and the ends of members.

        Written by crawlers (`exchange.lua`) and `reconcile_fleet`; taken by the run's consumer (`settle.lua`).
        """
        return f"{self.prefix}:group_run:{run}:items"

    def silenced(self) -> str:
        """HASH: members whose verdicts raise no alert (spider -> reason). Written by `trawl run silence`."""
        return f"{self.prefix}:silenced"

    def consumers(self) -> str:
        """HASH: the last consumer of each service's items, or of a group's (`books`, `books/files` -> JSON with target, node,
        host, and the mark of a file's folder).

        Written by consumers; read by these and `trawl services show`.
        """
        return f"{self.prefix}:consumers"

    def versions(self) -> str:
        """HASH: versions of deployed projects (service -> JSON with the current and the previous one, and of each the name of
        its wheel, the digest, the settings module).

        Written by `trawl deploy` and `trawl services versions` (`swap.lua`); read by nodes and supervisors.
        """
        return f"{self.prefix}:versions"

    def met(self, word: str) -> str:
        """STRING with TTL: a word by which a crawler finds out whether its own Redis is the fleet's.

        Written through the fleet's address and read through the project's by a crawler that begins.
        """
        return f"{self.prefix}:met:{word}"

    def launch(self, spider: str, number: int) -> str:
        """STRING with TTL: the node that a launch of this slot is on its way to; no second one is sent meanwhile.

        Written by `reconcile_fleet` (`launch_mark.lua`); removed by `run_crawler`.
        """
        return f"{self.prefix}:launch:{spider}/{number}"

    def waiting_slots(self) -> str:
        """LIST with TTL: slots for which no node has room, in the order in which they get one (`<rank>|<slot>`).

        Written by `reconcile_fleet`; taken by supervisors whose member of a run is over.
        """
        return f"{self.prefix}:waiting_slots"

    def nodes(self) -> str:
        """HASH: last heartbeat of each node (its name -> JSON with services, capacity, crawlers, files, time).

        Written by each worker's main process (`node_beat.lua`); read by `reconcile_fleet`, `trawl status` and the exporter.
        """
        return f"{self.prefix}:nodes"

    def drained_nodes(self) -> str:
        """HASH: nodes that take no crawlers until an operator undoes it (name -> epoch seconds of their last heartbeat).

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
        """HASH: holds of an operator, or of the breaker of a site, in the whole fleet, also in services that come later (`fleet`,
        `site:<name>`, `breaker:<site>`, `service:<spider>` -> JSON with word, at, by, reason).

        Written by `trawl pause`, `drain`, `stop`, `resume` and their tasks, by crawlers and `probe_sites`; read by
        `reconcile_fleet` and `trawl status`.
        """
        return f"{self.prefix}:holds"

    def breakers(self) -> str:
        """HASH: breaker of each site or host that answered with other pages than its own (site -> JSON with state, cause, reason,
        since, next probe, evidence); closed ones are kept for a day.

        Written by crawlers, `probe_sites` and `trawl resume` (`swap.lua`); read by these, `trawl status` and the exporter.
        """
        return f"{self.prefix}:breakers"

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

    def troubles(self) -> str:
        """HASH: what workers, beats, writers and consumers cannot do at the moment (process -> JSON of the problems that it sees,
        with the time); what is older than a minute does not count.

        Written by these processes; read by `trawl status`, the exporter and the API.
        """
        return f"{self.prefix}:troubles"

    def errors(self) -> str:
        """LIST: last errors of the fleet as JSON `{"at", "where", "what", "times"}`, newest first, at most 100.

        Written by supervisor, seeder and writer; read by `trawl status`.
        """
        return f"{self.prefix}:errors"

    def error_news(self, digest: str) -> str:
        """STRING with TTL: `1` for a minute after the last report of an error, whose text has this digest.

        Written and read by processes that report errors.
        """
        return f"{self.prefix}:errors:news:{digest}"

    def dead_messages(self) -> str:
        """LIST: messages of the broker that no worker could read or run, oldest first, as one line of JSON (`at_ms`, `queue`,
        `reason`, `form`) and the message's bytes; the newest 10,000 are kept until they are replayed or purged.

        Written by `dead_message.lua` (workers, and tools that read a queue); read by `trawl dead messages`, which takes them
        out.
        """
        return f"{self.prefix}:dead_messages"

    def begun_message(self, digest: str) -> str:
        """STRING with TTL: `1` after the signed message of this digest was begun, as long as its signature holds, so that none is
        run twice.

        Written and read by workers.
        """
        return f"{self.prefix}:begun_messages:{digest}"

    def runs(self) -> str:
        """LIST: crawler processes that have begun or ended, as JSON, oldest first, at most 10,000.

        Written by supervisors, and by crawlers without one; read by `trawl history` and the pages.
        """
        return f"{self.prefix}:runs"

    def ended_members(self) -> str:
        """LIST: members of runs that are over, as JSON, oldest first, at most 10,000.

        Written by `reconcile_fleet`; moved into the database by `store_items`.
        """
        return f"{self.prefix}:ended_members"

    def writable(self) -> str:
        """STRING with TTL: written to learn whether Redis takes writes again after it has refused them.

        Written by workers.
        """
        return f"{self.prefix}:writable"

    def audit(self) -> str:
        """STREAM: acts of operators (`act` -> JSON: operator, change, time, host), about the last 10,000.

        Written by commands and tasks that change something; read by `trawl audit`, and by `store_items` for the log of events.
        """
        return f"{self.prefix}:audit"

    def notes(self) -> str:
        """STREAM: the fleet's own acts: breakers, ends of rolls, services that sized themselves (`note` -> JSON), about the
        last 10,000.

        Written by crawlers, `probe_sites` and `reconcile_fleet`; moved into the log of events by `store_items`.
        """
        return f"{self.prefix}:notes"

    def samples(self, step: str) -> str:
        """HASH: figures of the fleet for each `minute` of a day, or each `hour` of 30 days (number of it since 1970 -> JSON).

        Written by `sample_fleet`; read by the page.
        """
        return f"{self.prefix}:samples:{step}"

    def backup_copy(self, word: str, number: int | str) -> str:
        """HASH, LIST, SET, STRING, ZSET with TTL: a copy of one key as it was at one instant, for `trawl backup create`, which
        removes it once it is read; or what `trawl backup restore` has read of a file, until all of it takes its place at once.

        Written and read by these two.
        """
        return f"{self.prefix}:backup:{word}:{number}"

    def orders(self) -> str:
        """HASH: what the holder of a slot shall do (`spider/number` -> `<token>|<word>|<reason>`); it counts for that token only.

        Written by `reconcile_fleet`; read by `slot_renew.lua`; removed by `slot_acquire.lua` and `slot_release.lua`.
        """
        return f"{self.prefix}:orders"


def fixed_keys(keys: object) -> dict[str, str]:
    """Return the keys that a method without parameters names, each with its type: `HASH`, `STRING with TTL`, `LIST, SET or ZSET`.

    The type is the first word of the method's docstring, as in docs/reference/redis-keys.md.
    """
    methods = [one for cls in type(keys).__mro__[:-1] for one in vars(cls).items() if inspect.isfunction(one[1])]
    named = [method for name, method in methods if name[0] != "_" and method.__code__.co_argcount == 1]
    return {key: (method.__doc__ or "").partition(":")[0] for method in named if isinstance(key := method(keys), str)}


LUA = Path(__file__).with_name("lua")


def script(name: str) -> scripts.Script:
    """Return the script `workers/state/lua/<name>.lua`. Raises KeyError if there is none."""
    return scripts.script(name, LUA)
