"""The whole import, in an order in which an interruption at any point loses and doubles nothing, and what it says at the end."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Protocol

import redis

from redis_components.errors import ConfigError, TrawlError
from redis_components.exchange import Order

from . import algorithm, fingerprints, queue
from .algorithm import Recognised
from .fingerprints import FingerprintsFound, FingerprintsReport
from .members import bytes_of
from .project import Project, StartKey
from .queue import Members, QueueFound, QueueReport
from .start_tasks import StartTasksReport, look_or_convert
from .watch import seen_at_work


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the operator allows and wants."""

    allow_pickle: bool = False
    as_is: bool = False  # payloads stay as they are, for the serializer that the project has
    order: Order | None = None  # of a queue that is a list, where the project does not tell
    convert_start_tasks: bool = False  # move what scrapy-redis sent as a form into `formdata`
    dry_run: bool = False
    watch_s: float = 6.0  # for so long crawlers of scrapy-redis are looked for; 0: not at all


class Tell(Protocol):
    """Told what is being imported, how many are done, and of how many."""

    def __call__(self, what: str, done: int, total: int, /) -> None: ...


@dataclass(kw_only=True)
class Report:
    """What the import did, or would do."""

    spider: str
    dry_run: bool
    at_work: str | None = None  # a crawler of scrapy-redis that works there
    requests: QueueReport = field(default_factory=QueueReport)
    fingerprints: FingerprintsReport = field(default_factory=FingerprintsReport)
    fingerprinter: Recognised | None = None
    start_tasks: list[StartTasksReport] = field(default_factory=list)  # empty where the spider reads them itself
    late: int = 0  # requests and fingerprints that an old crawler has written meanwhile
    bytes_before: int = 0
    bytes_after: int = 0
    seconds: float = 0.0


def migrate(client: redis.Redis, spider: str, project: Project, options: Options, tell: Tell) -> Report:
    """Import what scrapy-redis left of one spider's crawl; with `dry_run` only say what would become of it.

    Raises ConfigError where an option is missing, TrawlError while a crawler of either package works there.
    """
    began = time.monotonic()
    keys, report = project.keys, Report(spider=spider, dry_run=options.dry_run)
    found, known = queue.look(client, keys), fingerprints.look(client, keys, plain=True)
    if found.total or known.total:
        _migrate(client, project, options, report, found, known, tell)
    if not project.own_start_tasks:
        report.start_tasks = [_start_tasks(client, key, options) for key in project.start_keys]
    report.seconds = time.monotonic() - began
    return report


def _migrate(
    client: redis.Redis,
    project: Project,
    options: Options,
    report: Report,
    found: QueueFound,
    known: FingerprintsFound,
    tell: Tell,
) -> None:
    keys = project.keys
    as_is = options.as_is or project.keeps_payloads
    order = queue.order_of(found, options.order or project.order)
    _check_members(found, as_is=as_is, allow_pickle=options.allow_pickle)
    _watch(client, project, options, report)
    report.bytes_before = bytes_of(client, *_all_keys(project))
    if found.members is Members.PICKLES and options.allow_pickle:
        report.fingerprinter = algorithm.recognise(client, keys, found)
    if options.dry_run:
        report.fingerprints = FingerprintsReport(found=known.total, added=known.total)
        report.requests = queue.try_requests(client, keys, found, as_is=as_is, tell=_part(tell, "requests"))
    else:
        queue.set_aside(client, keys, found)  # first: from here on nothing that old crawlers write can be taken for ours
        report.fingerprints = _import_fingerprints(client, project, known, tell)
        report.requests = queue.import_requests(client, keys, found, order, as_is=as_is, tell=_part(tell, "requests"))
        report.late = queue.look(client, keys).foreign + fingerprints.look(client, keys, plain=True).foreign
        report.bytes_after = bytes_of(client, *_all_keys(project))


def _start_tasks(client: redis.Redis, key: StartKey, options: Options) -> StartTasksReport:
    """Under a namespace the tasks move with the crawl, unless ours has some of its own."""
    if key.theirs != key.ours and not options.dry_run and client.exists(key.theirs):
        client.renamenx(key.theirs, key.ours)
    read = key.ours if client.exists(key.ours) else key.theirs
    return look_or_convert(client, read, convert=options.convert_start_tasks and not options.dry_run)


def _check_members(found: QueueFound, *, as_is: bool, allow_pickle: bool) -> None:
    if found.members is Members.PICKLES and not as_is and not allow_pickle:
        raise ConfigError(
            "the queue holds pickles, which can run code when they are read: say --allow-pickle, and a process that is shut in"
            " reads them; or keep them as they are with SCHEDULER_SERIALIZER = 'redis_components.picklecompat' and --as-is"
        )
    if found.members is Members.OTHER and not as_is:
        raise ConfigError(
            "the queue holds no pickles, so they are of a SCHEDULER_SERIALIZER of the project: keep that setting, and say --as-is"
        )


def _watch(client: redis.Redis, project: Project, options: Options, report: Report) -> None:
    if not options.watch_s:
        return
    report.at_work = seen_at_work(client, project.keys.theirs, options.watch_s)
    if report.at_work and not options.dry_run:
        raise TrawlError(
            f"a crawler of scrapy-redis still works there, {report.at_work}: stop all of them first; nothing was changed"
        )


def _import_fingerprints(client: redis.Redis, project: Project, known: FingerprintsFound, tell: Tell) -> FingerprintsReport:
    key = project.keys.ours.dupefilter

    def store(batch: list[bytes]) -> None:
        client.sadd(key, *batch)

    return fingerprints.import_fingerprints(client, project.keys, known, store, tell=_part(tell, "fingerprints"))


def _all_keys(project: Project) -> set[str]:
    keys = project.keys
    both = (keys.ours.requests, keys.ours.dupefilter, keys.theirs.requests, keys.theirs.dupefilter)
    return {*both, keys.theirs.foreign_requests(), keys.theirs.foreign_fingerprints()}


def _part(tell: Tell, what: str) -> Any:
    return lambda done, total: tell(what, done, total)
