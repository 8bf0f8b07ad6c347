"""Files of a run: the items of each member in one file, which is written as a whole when the member is over, and a manifest.

Crawlers send the items of all members into one list, each with its member's name; the end of a member is an entry there, behind
its last item. Items are kept in parts, each written once under a name that Redis has noted. A separate process makes the files of
members that are over, since exporters are a project's code: `fleet_operations.consumers.member_files`.
"""

from __future__ import annotations

import logging
import os
import platform
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import msgspec
import redis

from redis_components.embedded import data_dir
from redis_components.embedded.die_with_parent import tied
from redis_components.errors import ConfigError
from redis_components.items.stream import ItemStream
from redis_components.keys import CrawlKeys
from redis_components.server.names import fleet_namespace, is_name
from redis_components.server.signing import signing_is_on
from redis_components.server.untrusted_values import server_time
from workers.process.run_module import own_module
from workers.state.group_runs import MEMBER, GroupRun, GroupRuns, RunState
from workers.state.keys import FleetKeys
from workers.targets import Target, check_place, parse_target

from .consume import Item, to_line
from .parts import Parts, Place, place_of, put_text

WITHIN_S = 3.0
"""Longest wait of a part for more items."""
MOST_TRIES = 3
"""Deaths and errors of a member's exporter after which its items are written as JSON Lines."""
MOST_MEMBERS = 50
"""Members whose files one process makes."""
LONGEST_S = 900.0
"""Longest life of that process."""
AGAIN_S = 5.0
MANIFEST, LATEST = "manifest.json", "latest"
FEEDS_ONLY = "feeds"

logger = logging.getLogger(__name__)


def item_key(run: str) -> str:
    """Return the pattern of the key of the run's items, without the namespace."""
    namespace = fleet_namespace()
    return FleetKeys().run_items(run).removeprefix(f"{namespace}:" if namespace else "").replace("%", "%%")


def member_settings(run: GroupRun, spider: str) -> dict[str, str]:
    """Return the settings of a member's crawlers, whose items go to the run's consumer instead of into feeds."""
    if not run.files:
        return {}
    return {"REDIS_ITEMS_KEY": item_key(run.id), MEMBER: spider, "FEEDS": "{}", "FEED_URI": ""}


def end_member(client: redis.Redis, run: GroupRun, spiders: Sequence[str]) -> None:
    """Put the end of members behind their items; done twice it has the effect of once."""
    if run.files and spiders:
        key = CrawlKeys.for_spider(run.id, items=item_key(run.id)).item_stream()
        client.rpush(key, *(msgspec.json.encode({"spider": one, "ended": True}) for one in spiders))


class Feed(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a member has left."""

    file: str
    """Its name in the run's folder, or the address of a feed of the project."""
    bytes: int = 0
    sha256: str = ""


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """The files of one member, as they are noted in the run's folder."""

    spider: str
    rows: int = 0
    files: list[Feed] = []
    error: str = ""


class MemberOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A member whose files are to be made; `plain`: as JSON Lines, without the project."""

    spider: str
    module: str = ""
    plain: bool = False


class FilesOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The task of the process that makes files of members."""

    run: GroupRun
    members: list[MemberOrder]


@dataclass(frozen=True, kw_only=True)
class RunConsumer:
    """The consumer of a run's items."""

    run: str
    group: str
    files: str
    in_file: bool
    """This machine's `trawl.toml` names the place; what is in Redis may be anybody's who can write there."""
    taken_by: str = ""

    @property
    def target(self) -> Target:
        """The place, as one of a consumer. Raises ConfigError for one that Redis may not name."""
        target = parse_target(self.files if self.files.startswith("s3:") else f"jsonl:{data_dir() / self.files / self.group}")
        if not self.in_file and not signing_is_on():
            check_place(target)
        return target

    def stream(self, client: redis.Redis) -> ItemStream:
        """Return the run's items."""
        return ItemStream(client, CrawlKeys.for_spider(self.run, items=item_key(self.run)))

    def open(self, client: redis.Redis) -> RunFiles:
        """Return the sink. Raises ConfigError."""
        run = GroupRuns(client).get(self.run)
        if run is None:
            raise ConfigError(f"there is no run {self.run}: its items stay in Redis")
        return RunFiles(client, run)


class RunFiles(Parts):
    """Keeps the items of a run, and has the files of its members made."""

    def __init__(self, client: redis.Redis, run: GroupRun) -> None:
        super().__init__(max_age_s=WITHIN_S)
        self._client, self._run, self._place = client, run, place_of(run.files)
        self._folder = folder_of(run)
        self._stream: ItemStream | None = None
        self._making: subprocess.Popen[bytes] | None = None
        self._at_work: list[str] = []
        self._began_at = self._not_before = 0.0
        self._tries: Counter[str] = Counter()
        self._done, self._ended = self._noted("done.json"), self._noted("ended")

    def _noted(self, name: str) -> set[str]:
        """Return the members that have a file of this name. Not at each tick: a bucket is asked by HTTP."""
        found = self._place.names(f"{self._folder}/.parts")
        return {one.split("/")[-2] for one in found if one.endswith(f"/{name}")}

    def peek(self, stream: ItemStream, token: str) -> list[bytes]:
        """Return the items of the next part."""
        self._stream = stream
        return super().peek(stream, token)

    def write(self, items: Sequence[Item]) -> dict[int, str]:
        """Keep a part of the items of all members, a file for each; then note the members that it ends."""
        lines: dict[str, list[bytes]] = {}
        ended, refused = [], {}
        for one in items:
            spider = one.value.get("spider") if isinstance(one.value, Mapping) else None
            if not isinstance(spider, str) or not is_name(spider):
                refused[one.place] = "it is not the item of a member of this run"
            elif one.value.get("ended") is True:
                ended.append(spider)
            else:
                lines.setdefault(spider, []).append(to_line(one.value))
        for spider, some in lines.items():
            put_text(self._place, f"{self._folder}/.parts/{spider}/items/{self.part}.jsonl", b"".join(some))
        for spider in ended:
            put_text(self._place, f"{self._folder}/.parts/{spider}/ended", b"")
        self._ended |= set(ended)
        return refused

    def tick(self) -> None:
        """Have the files of members made that are over, and the manifest when all are."""
        if self._making is not None:
            if self._making.poll() is None and time.monotonic() - self._began_at < LONGEST_S:
                return
            self._count()
        if time.monotonic() < self._not_before:
            return
        if over := sorted(self._ended - self._done):
            self._begin(over[:MOST_MEMBERS])
        elif self._stream is not None and not len(self._stream):
            self._finish()

    def close(self) -> None:
        """End the process that makes files; it is started again with the consumer."""
        if self._making is not None:
            self._making.kill()
            self._making.wait()

    def _begin(self, over: list[str]) -> None:
        """Have the files of some members made."""
        run, modules = self._run, GroupRuns(self._client).modules(self._run.id, over)
        members = [
            MemberOrder(spider=spider, module=module, plain=self._tries[spider] >= MOST_TRIES)
            for spider, module in zip(over, modules, strict=True)
        ]
        environment = {**os.environ, **({"SCRAPY_SETTINGS_MODULE": run.project} if run.project else {})}
        with tempfile.TemporaryFile() as given:
            given.write(msgspec.json.encode(FilesOrder(run=run, members=members)))
            given.seek(0)
            command = tied(*own_module("fleet_operations.consumers.member_files"))
            self._making = subprocess.Popen(command, stdin=given, env=environment)
        self._at_work, self._began_at = over, time.monotonic()

    def _count(self) -> None:
        """Note what was made, and count an error, or the end of the process, against the members whose files are missing."""
        assert self._making is not None
        self.close()
        self._done = self._noted("done.json")
        failed = [spider for spider in self._at_work if spider not in self._done]
        if self._making.returncode:  # those behind the one at work were not reached
            failed = failed[:1]
        self._making = None
        for spider in failed:
            self._tries[spider] += 1
            self._not_before = time.monotonic() + AGAIN_S
            logger.warning("run %s: the files of %s were not written, see above; trying again", self._run.id, spider)

    def _finish(self) -> None:
        """Write the manifest where the run is over and all its members have their files."""
        runs = GroupRuns(self._client)
        run = runs.get(self._run.id)
        if run is None or not run.state.ended or run.stored_at is not None or (self._stream is not None and len(self._stream)):
            return
        write_manifest(self._place, runs, run)
        if run.state is RunState.FINISHED:
            self._place.point(f"{run.group}/{LATEST}", run.id)
        prune(self._place, run, server_time(self._client))
        runs.change(run.id, lambda now: replace(now or run, stored_at=server_time(self._client)))
        self._place.remove(f"{self._folder}/.parts")  # last: the manifest is made of what is there


def folder_of(run: GroupRun) -> str:
    """Return the folder of a run in its place."""
    return f"{run.group}/{run.id}"


def write_manifest(place: Place, runs: GroupRuns, run: GroupRun) -> None:
    """Write the run's members with their verdicts, figures and files."""
    folder, written = folder_of(run), {}
    for name in place.names(f"{folder}/.parts"):
        if name.endswith("/done.json"):
            one = msgspec.json.decode(b"".join(place.lines(name)), type=Written)
            written[one.spider] = one
    members = []
    for spider, member in sorted(runs.members(run.id).items()):
        left = written.get(spider, Written(spider=spider))
        about = {name: value for name, value in vars(member).items() if name != "traceback"}
        members.append({**about, "rows": left.rows, "files": left.files, "error": left.error})
    manifest: dict[str, Any] = {
        "run": run.id,
        "group": run.group,
        "state": run.state,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "counts": run.counts,
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in ("trawl-fleet", "Scrapy")}},
        "members": members,
    }
    put_text(place, f"{folder}/{MANIFEST}", msgspec.json.format(msgspec.json.encode(manifest)))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def prune(place: Place, run: GroupRun, now: float) -> None:
    """Remove the folders of runs that are too many, or too old; one without a manifest is not a run's, or not over."""
    oldest = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now - run.keep_days * 86_400)) if run.keep_days else ""
    known = [one for one in place.folders(run.group) if one.startswith(f"{run.group}-")]
    for number, name in enumerate(reversed(known)):
        too_old = name.removeprefix(f"{run.group}-") < oldest
        if (number >= run.keep_runs or too_old) and name != run.id and any(place.lines(f"{run.group}/{name}/{MANIFEST}")):
            place.remove(f"{run.group}/{name}")
