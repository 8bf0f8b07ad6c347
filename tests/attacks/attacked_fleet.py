"""A running fleet that reads an innocent site, whose new threads are timed by its own log and by rows of the database."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest
import redis

from forums import FORUM_LIST
from forums.scheduling.seeding import seed
from redis_components.keys import keys_in
from redis_components.server.untrusted_values import server_time
from redis_components.start_tasks.seeding import pending
from tests.attacks.two_sites import SITE_FILE
from tests.support.processes import wait_until
from tests.support.watched_fleet import WatchedFleet
from tests.support.watched_site import Page, WatchedSite
from workers.state.beats import Schedules, StoredEntry

READ_WITHIN_S = 60.0


def json_site(base: str, *, top: str = "", more: str = "", breaker: str = "in_a_row = 3", every_s: float = 0.5) -> str:
    """A site file for a site that answers with JSON."""
    schedule = f"[schedule]\nscan_budget_per_hour = 1000000\nmin_interval_s = {every_s}\nmax_interval_s = {every_s}\n"
    text = SITE_FILE.format(base=base, top=top, breaker=breaker, more=schedule + more)
    fields = "[pages.thread.fields]\n"
    return text.replace(fields, f'{fields}author = "author"\ncreated_at = "at"\n')


@dataclass(frozen=True, kw_only=True)
class Delay:
    """From the publication of a thread until the site was asked for it, and until it was in the database, s."""

    asked_s: float
    stored_s: float


class InnocentSite(WatchedSite):
    """Notes when each path was asked for first."""

    def __init__(self) -> None:
        super().__init__()
        self.first_asked: dict[str, float] = {}
        self.threads: list[dict[str, Any]] = []
        self.listed_at = 0.0
        self._count = 0
        known = self.answer

        def answer(path: str) -> Page:
            self.first_asked.setdefault(path, time.monotonic())
            if path == "/list/f":
                self.listed_at = time.monotonic()
                return Page({"threads": self.threads[:20]})
            if path.startswith("/comments/"):
                return Page({"comments": []})
            return known(path)

        self.answer = answer

    def publish(self) -> tuple[str, float]:
        """A new thread, and when it was there."""
        self._count += 1
        id_ = f"t{self._count}"
        self.pages[f"/t/{id_}"] = Page({"title": f"title {id_}", "body": f"body {id_}", "replies": 0})
        self.threads.insert(0, {"id": id_, "title": f"title {id_}", "url": f"{self.url}/t/{id_}", "replies": 0})
        return id_, time.monotonic()


@dataclass
class AttackedFleet:
    """Two crawlers of lists and two of threads on one node, with beat, unless told otherwise."""

    folder: Path
    innocent: InnocentSite
    sizes: str = "forum_list=2,forum_detail=2"
    nodes: str = "a"
    beats: int = 1
    environment: dict[str, str] = field(default_factory=dict)

    def __enter__(self) -> Self:
        self._attacks = 0
        self.sites = self.folder / "sites"
        self.sites.mkdir()
        self.database = self.folder / "trawl.sqlite"
        given = {
            "SCRAPY_SETTINGS_MODULE": "workers.settings",
            "TRAWL_SITES_DIR": str(self.sites),
            "TRAWL_DATABASE_URL": f"sqlite:///{self.database}",
            **self.environment,
        }
        self.fleet = WatchedFleet(self.folder, self.sizes, nodes=self.nodes, beats=self.beats, **given).__enter__()
        try:
            self.client: redis.Redis = self.fleet.client
            Schedules(self.client).set("seed_forums", StoredEntry(every_s=1.0))  # the hostile site is looked at often
            (self.sites / "innocent.toml").write_text(json_site(self.innocent.url, breaker="enabled = false", every_s=3600))
            self.wait_whole()
            self.delay()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.fleet.__exit__(*error)

    def wait_whole(self) -> None:
        """Wait until each slot has a crawler that crawls."""
        wait_until(lambda: self.fleet.at_work().keys() == set(self.fleet.slots), lambda: f"all crawl\n{self.fleet.said()}", 120)

    def declare(self, text: str) -> None:
        """The file of the hostile site."""
        (self.sites / f"{self.name}.toml").write_text(text)

    @contextmanager
    def hostile_site(self) -> Iterator[None]:
        """`evil` is another site in each block, which nothing is known of; at its end it is gone, and every crawler is there."""
        self._attacks += 1
        self.name = f"evil{self._attacks}"
        with WatchedSite() as self.evil:
            yield
            (self.sites / f"{self.name}.toml").unlink(missing_ok=True)
            self.wait_whole()

    def wait_settled(self) -> None:
        """Wait until the last scan of the innocent site is stored: until then no other one is begun."""
        keys, now = keys_in(self.client, FORUM_LIST), server_time(self.client)
        wait_until(lambda: not pending(self.client, keys, ["innocent/f"], now), self.fleet.said, READ_WITHIN_S)

    def delay(self) -> Delay:
        """Of a thread that the innocent site publishes now, and that is looked for now."""
        id_, at = self.innocent.publish()
        path, stored = f"/t/{id_}", 0.0

        def is_stored() -> bool:
            nonlocal stored
            if self.innocent.listed_at < at:  # a scan that had begun before may have seen the list without it
                seed(self.client, site="innocent", force=True)
            elif path in self.innocent.first_asked and self._row(id_):
                stored = time.monotonic()
            return bool(stored)

        def waits() -> str:
            asked = "asked for" if path in self.innocent.first_asked else "not asked for"
            work = [f"{spider}: {self.fleet.frontier(spider)}" for spider in ("forum_list", "forum_detail")]
            return "\n".join((f"thread {id_} was {asked} and is not stored", *work, self.fleet.said()))

        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("TRAWL_SITES_DIR", str(self.sites))
            wait_until(is_stored, waits, READ_WITHIN_S, every_s=0.01)
        return Delay(asked_s=self.innocent.first_asked[path] - at, stored_s=stored - at)

    def texts(self) -> list[str]:
        """The bodies that were stored of the hostile site."""
        with closing(sqlite3.connect(self.database)) as database:
            return [str(row[0]) for row in database.execute("select body from posts where site = ?", (self.name,))]

    def _row(self, id_: str) -> bool:
        with suppress(sqlite3.OperationalError), closing(sqlite3.connect(self.database)) as database:  # before the first batch
            found = database.execute("select 1 from posts where site = 'innocent' and id = ?", (id_,)).fetchone()
            return found is not None
        return False


class Background:
    """Calls something again and again in a thread, until the block ends."""

    def __init__(self, call: Callable[[], object], *, every_s: float = 0.2) -> None:
        self._call, self._every_s, self._over = call, every_s, threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join(60)

    def _run(self) -> None:
        while not self._over.wait(self._every_s):
            with suppress(OSError):
                self._call()
