"""Consumers of the fleet's declared services: where the items of each go, and the process of a node that takes them.

One consumer for each service, by the lock of its items. Which node has it is in Redis. A file stays where
it was begun: another machine would begin another file under the same name, so there nothing is taken.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import redis

from redis_components import defaults
from redis_components.connection import connect
from redis_components.embedded import data_dir
from redis_components.errors import ConfigError, TrawlError
from redis_components.items.stream import ItemStream, Lock, new_token
from redis_components.keys import CrawlKeys, CrawlRecord, CrawlRecords
from redis_components.server import fleet_file
from redis_components.server.printable import masked
from redis_components.server.signing import signing_is_on
from redis_components.server.untrusted_values import JsonRecord, RecordStore
from workers.application import application
from workers.environment.declaration import settings_module
from workers.fleet.sizes import services_in_file
from workers.state.group_runs import GroupRuns
from workers.state.keys import FleetKeys
from workers.state.services import ServiceRecord, Services
from workers.targets import Target, check_place, parse_target

from .consume import Sink, SinkOptions, consume, open_sink, report, unlock
from .run_files import RunConsumer

LOOK_S = 2.0
AGAIN_S = 10.0  # after a consumer that ended: what was missing may be back
MARK = ".trawl-consumer"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Declared:
    """A consumer that a service declares."""

    service: str
    text: str
    """The target, which may hold a password."""
    keys: CrawlKeys
    key: str
    in_file: bool
    """The declaration that counts is in this machine's file; what is in Redis may be anybody's who can write there."""
    taken_by: str = ""

    @property
    def target(self) -> Target:
        """The target, a relative path in the data folder. Raises ConfigError for one that Redis may not name."""
        target = parse_target(self.text).below(data_dir())
        if not self.in_file and not signing_is_on():
            check_place(target)
        return target

    def open(self, client: redis.Redis) -> Sink:  # noqa: ARG002 - as RunConsumer has it
        """Return the sink. Raises ConfigError."""
        return open_sink(self.target, self.options())

    def options(self) -> SinkOptions:
        """Return the options of its sink; the key counts for a database."""
        key = self.key if self.target.kind.has_rows else ""
        return SinkOptions(table=self.service, key=key)

    def stream(self, client: redis.Redis) -> ItemStream:
        """Return the items. Raises ConfigError where they are another consumer's."""
        if self.taken_by:
            raise ConfigError(f"the items of {self.service} are taken by {self.taken_by}: trawl roll {self.service}")
        return ItemStream(client, self.keys)


def declared_consumers(client: redis.Redis) -> dict[str, Declared]:
    """Return the consumers by service, also of targets that an older Trawl knew, for which none runs. Raises ConfigError and
    `redis.RedisError`.
    """
    in_file, in_redis = services_in_file(), Services(client).all()
    targets = {service: one for service, one in (in_file | in_redis).items() if ":" in one.consumer}
    crawls = CrawlRecords(client).all() if targets else {}
    return {
        service: Declared(
            service=service,
            text=one.consumer,
            keys=crawl_keys(service, crawls.get(service), one),
            key=one.key,
            in_file=service not in in_redis,
            taken_by=crawls[service].consumer if service in crawls else "",
        )
        for service, one in targets.items()
    }


def wanted_consumers(client: redis.Redis) -> dict[str, Declared | RunConsumer]:
    """Return the declared consumers, and those of runs with files, as `run/ID`. Raises ConfigError and `redis.RedisError`."""
    found: dict[str, Declared | RunConsumer] = {**declared_consumers(client)}
    wanted = [run for run in GroupRuns(client).all().values() if run.files and run.stored_at is None]
    here = fleet_file.declared("groups") if wanted else None
    groups = here.tables["groups"] if here else {}
    for run in wanted:
        in_file = groups.get(run.group, {}).get("files") == run.files
        found[f"run/{run.id}"] = RunConsumer(run=run.id, group=run.group, files=run.files, in_file=in_file)
    return found


def crawl_keys(service: str, crawl: CrawlRecord | None, declared: ServiceRecord | None) -> CrawlKeys:
    """Return the keys of the service's crawl: as recorded, else as declared."""
    items = (declared.items_key if declared else "") or defaults.PIPELINE_KEY
    return crawl.keys if crawl else CrawlKeys.for_spider(service, items=items)


def without_consumer(client: redis.Redis, declared: Mapping[str, Declared | RunConsumer] | None = None) -> list[str]:
    """Return the names in `declared`, else in `wanted_consumers`, whose items no consumer takes at the moment."""
    known = wanted_consumers(client) if declared is None else declared
    locks = {name: one.stream(client).writer_key for name, one in known.items() if not one.taken_by}
    with client.pipeline(transaction=False) as pipe:
        for lock in locks.values():
            pipe.exists(lock)
        return [name for name, runs in zip(locks, pipe.execute(), strict=True) if not runs]


@dataclass(frozen=True, kw_only=True)
class ConsumerPlace(JsonRecord):
    """The last consumer of a service's items."""

    target: str
    """As it may be shown."""
    node: str
    host: str
    folder: str = ""
    """Of a file: what its folder is known by, on each machine that has it."""


class ConsumerPlaces(RecordStore[ConsumerPlace]):
    """Record of where the items of each service are written. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis) -> None:
        super().__init__(client, FleetKeys().consumers(), ConsumerPlace)

    def claim(self, name: str, target: Target, node: str, *, moved: bool = False) -> None:
        """Note that `node` writes the items from now on; call it under the lock of the items.

        Raises ConfigError where they are written to a file of another machine, unless it is `moved` on purpose.
        """
        path, known, here = target.path, self.get(name), socket.gethostname()
        shown = str(path) if path else masked(target.place)
        mark = path.absolute().parent / MARK if path else None
        folder = _read(mark) if mark else ""
        of_another = known and known.folder and known.target == shown and known.folder != folder and known.host != here
        if known and of_another and not moved:
            raise ConfigError(
                f"the items of {name} are written to {shown} on {known.node}, whose folder this machine does not have, and"
                f" nothing is written here: start that node or share the folder; to go on in another file here, run once:"
                f" trawl items consume {name} --to {target.kind.name}:{shown}"
            )
        if mark and not folder:
            folder = _mark(mark)
        record = ConsumerPlace(target=shown, node=node, host=here, folder=folder)
        self._client.hset(self._key, name, self.encoded(name, record))

    def forget(self, service: str) -> None:
        """Forget where the items of a service were written: it is not declared any more."""
        self._client.hdel(self._key, service)


def _read(mark: Path) -> str:
    try:
        with mark.open(encoding="ascii", errors="replace") as file:
            return file.read(32).strip()
    except OSError:
        return ""


def _mark(mark: Path) -> str:
    name = secrets.token_hex(8)
    try:
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.write_text(f"{name}\n", "ascii")
    except OSError as error:
        raise ConfigError(f"{mark} cannot be written: {error.strerror}: name a file that this user may write") from None
    return name


class _Consumer:
    """One consumer, in a thread."""

    def __init__(self, name: str, declared: Declared | RunConsumer, node: str, log: Callable[[str], object]) -> None:
        self.declared = declared
        self._name, self._node, self._log = name, node, log
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"consumer of {name}", daemon=True)
        self._thread.start()

    def runs(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        self._over.set()

    def join(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        try:
            self._take()
        except (TrawlError, redis.RedisError) as error:
            self._log(f"{self._name}: {error}")
        except Exception:
            logger.exception("the consumer of %s ended; it is started again", self._name)

    def _take(self) -> None:
        client, token = connect(), new_token()
        stream = self.declared.stream(client)
        if stream.lock(token) is Lock.BUSY:
            return
        try:
            ConsumerPlaces(client).claim(self._name, self.declared.target, self._node)
            sink = self.declared.open(client)
        except BaseException as error:
            report(stream, str(error))
            unlock(stream, token)
            raise
        report(stream, "")
        log = self._log
        consume(stream, sink, stopped=self._over.is_set, token=token, log=lambda line: log(f"{self._name}: {line}"))


class ConsumerHost:
    """Consumers of all declared services that no other process consumes. Used from one thread."""

    def __init__(self, node: str, log: Callable[[str], object] = logger.info) -> None:
        self._node, self._log = node, log
        self._running: dict[str, _Consumer] = {}
        self._not_before: dict[str, float] = {}

    def run(self, stopped: Callable[[], bool]) -> None:
        """Start what is declared and missing, end what is not declared any more, until `stopped`; what the consumers write is
        finished then. Ends where nothing is declared.
        """
        client, declared = connect(), dict[str, Declared | RunConsumer]()
        look_at = 0.0
        try:
            while not stopped():
                if time.monotonic() >= look_at:
                    look_at = time.monotonic() + LOOK_S
                    with suppress(TrawlError, OSError, redis.RedisError):  # Redis is away, or the file is being edited
                        declared = wanted_consumers(client)
                        self._follow(declared, without_consumer(client, declared))
                    if not declared and not self._running:
                        return
                time.sleep(0.1)
        finally:
            for one in self._running.values():
                one.stop()
            for one in self._running.values():
                one.join()

    def _follow(self, declared: Mapping[str, Declared | RunConsumer], missing: list[str]) -> None:
        for name, one in list(self._running.items()):
            if declared.get(name) != one.declared:
                one.stop()
            if not one.runs():
                del self._running[name]
                self._not_before[name] = time.monotonic() + AGAIN_S if declared.get(name) == one.declared else 0.0
        for name in missing:
            if name not in self._running and time.monotonic() >= self._not_before.get(name, 0.0):
                self._running[name] = _Consumer(name, declared[name], self._node, self._log)


def streams_of(
    consumer: str, records: Mapping[str, CrawlRecord], services: Iterable[str], environment: Mapping[str, str] = os.environ
) -> dict[str, CrawlKeys]:
    """Return the crawls whose item stream this consumer may touch, by service.

    Crawls that declare it count, in the fleet or not. A stream shared with a service that does not declare it is left alone. Of
    `services` that have never had a crawler, only the application's spiders count, and only where the project is Trawl's: in
    another project a spider of that name may be anything.
    """
    declared = {name: one.keys for name, one in records.items() if one.consumer == consumer}
    own = application().consumers().get(consumer, ())
    if own and settings_module(environment) == "workers.settings":
        never_ran = [name for name in services if name in own and name not in records]
        declared |= {name: CrawlKeys.for_spider(name) for name in never_ran}
    foreign = {one.keys.items for name, one in records.items() if name not in declared}
    found: dict[str, CrawlKeys] = {}
    for name, keys in declared.items():
        if keys.items not in foreign and keys.items not in {one.items for one in found.values()}:
            found[name] = keys
    return found
