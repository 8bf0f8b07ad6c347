"""A run over a public project's spiders against a stub of the internet, with deaths, on two nights.

    python -m benchmarks.fleet.runs_project PROJECT PYTHON [--members 1000] [--at-once 12] [--page FILE]

PROJECT is the folder of a Scrapy project (alltheplaces), PYTHON an interpreter that has its packages and Scrapy; nothing is
fetched. A proxy on this machine answers for each host: pages, 404, 403, 429, a challenge, silence, redirects to another host,
errors of the server, a closed port, robots.txt that forbids all. The right verdict follows from the answer; for pages, it is what
plain Scrapy makes of them in one process: items, none, or exceptions. A fleet of two workers crawls two groups, one of which has
a key of its items, while crawlers, workers and Redis are killed. Rows of the members' files are compared with those of plain
Scrapy, and the requests that the proxy was sent are counted. On the second night some pages have lost a field, most of their
items, or their markup.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import redis

from benchmarks.support.plain_crawls import LIST, PLAIN, Plain, rows_of
from benchmarks.support.report import BenchmarkFailed, Report, options
from benchmarks.support.stub_internet import (
    BLOB,
    CHANGED,
    FAULTS,
    HOSTS,
    ITEMS,
    PAGE,
    REQUESTS,
    SITEMAP,
    pages_of,
    write_certificate,
)
from redis_components.embedded.die_with_parent import tied
from redis_components.embedded.files import free_port
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from workers.process.run_module import own_module
from workers.state.group_runs import GroupRuns, Member, Verdict
from workers.state.registry import Registry

ROOT = Path(__file__).parents[2]
GROUPS = {"plain": "", "keyed": "ref"}
"""The groups, and the field by which rows of their members' files are unlike; "": rows are not compared."""
MOST_DEATHS = 3
"""Of one member's crawlers: one that dies six times in a row within seconds is given up, as it should be."""
EVERY_S_CRAWLER = (4.0, 8.0)
EVERY_S = {"a": 300.0, "b": 480.0, "redis": 400.0}
"""Between two deaths of a worker, and of Redis."""


@dataclass(kw_only=True)
class Outcome:
    """One night of the fleet."""

    members: dict[str, Member] = field(default_factory=dict)
    rows: dict[str, list[str]] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    deaths: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


class Night:
    """The project, its fleet, and the stub."""

    def __init__(self, folder: Path, project: Path, python: str, at_once: int) -> None:
        self._folder, self._project, self._python = folder, project, python
        self._at_once = at_once
        self.redis = RedisServer(aof=True)
        self._programs: dict[str, subprocess.Popen[bytes]] = {}
        self._died: Counter[str] = Counter()
        self._next_death: dict[str, float] = {}
        self.port = free_port()
        self.settings: dict[str, Any] = {"DOWNLOAD_DELAY": 0, "DOWNLOAD_TIMEOUT": 3, "RETRY_TIMES": 1, "LOG_LEVEL": "INFO"}
        self.settings["FEED_EXPORTERS"] = "{}"  # one of them needs a package that cannot be had

    @contextmanager
    def running(self, members: list[str]) -> Iterator[None]:
        """Run the stub, Redis, beat and two workers."""
        proxy, toml = f"http://127.0.0.1:{self.port}", self._folder / "trawl.toml"
        more = {**self.settings, "ALLOW_PRIVATE_ADDRESSES": "127.0.0.1"}
        settings = "\n".join(f"{name} = {json.dumps(value)}" for name, value in more.items())
        groups = [
            f"[groups.{name}]\nspiders = {json.dumps(members[turn :: len(GROUPS)])}\nkey = {json.dumps(key)}\n"
            f'at_once = {self._at_once // len(GROUPS)}\nfiles = "items"\n[groups.{name}.settings]\n{settings}\n'
            for turn, (name, key) in enumerate(GROUPS.items())
        ]
        toml.write_text("\n".join(groups))
        write_certificate(self._folder)
        self.redis.start()
        self.environment = {
            **os.environ,
            **dict.fromkeys(("http_proxy", "https_proxy"), proxy),
            "PYTHONPATH": str(ROOT),
            "TRAWL_REDIS_URL": self.redis.url,
            "TRAWL_DATA_DIR": str(self._folder / "data"),
            "TRAWL_CONFIG": str(toml),
            "TRAWL_FLEET": f"{members[0]}=0",
            "TRAWL_NODE_CRAWLERS": str(-(-self._at_once // 2)),
        }
        stub = [sys.executable, "-m", "benchmarks.support.stub_internet", str(self.port), str(self._folder)]
        try:
            self._start("stub", stub, cwd=ROOT)
            self.worker("a"), self.worker("b")
            self._start("beat", [self._python, "-m", "celery", "-A", "tasks", "beat"])
            yield
        finally:
            for one in self._programs.values():
                one.kill()
                one.wait()
            self.redis.close()

    def worker(self, name: str) -> None:
        """Start a worker."""
        self._start(name, [self._python, "-m", "celery", "-A", "tasks", "worker", "-n", f"{name}@stub"])

    def _start(self, name: str, command: list[str], cwd: Path | None = None) -> None:
        with (self._folder / f"{name}.log").open("ab") as log:
            tied_command, place = tied(*command), cwd or self._project
            self._programs[name] = subprocess.Popen(tied_command, cwd=place, env=self.environment, stdout=log, stderr=log)

    def script(self, text: str, *arguments: str, **environment: str) -> None:
        """Run a script in the project."""
        done = subprocess.run(
            [self._python, "-c", text, *arguments],
            cwd=self._project,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        (self._folder / "script.log").write_text(done.stderr)
        if done.returncode:
            raise BenchmarkFailed(done.stderr[-2000:])

    def answer_as(self, hosts: dict[str, Any]) -> None:
        """Have the stub answer by this table."""
        part = self._folder / "hosts.part"
        part.write_text(json.dumps(hosts))
        part.replace(self._folder / HOSTS)

    def plain(self, members: dict[str, Any], name: str) -> dict[str, Plain]:
        """Return the end of each spider by plain Scrapy, in one process."""
        given, out = self._folder / "given.json", self._folder / name
        given.write_text(json.dumps(members))
        proxy = f"http://127.0.0.1:{self.port}"
        if not out.is_dir():  # it was done before, in a folder that is kept
            out.mkdir()
            self.script(PLAIN, str(given), str(out), json.dumps(self.settings), http_proxy=proxy, https_proxy=proxy)
        found = json.loads((out / "results.json").read_text())
        return {spider: Plain(**one, rows=rows_of(out / f"{spider}.jsonl")) for spider, one in found.items()}

    def run(self, limit_s: float, *, kill: bool) -> Outcome:
        """Run the groups to their ends; return what the members left, and what the stub was asked for."""
        log, outcome, began = self._folder / REQUESTS, Outcome(), time.monotonic()
        seen = log.stat().st_size
        self._next_death = {what: began + 30 + every for what, every in EVERY_S.items()}
        runs = {}
        for group in GROUPS:
            command = own_module("cli.main", "run", "--group", group, python=self._python)
            done = subprocess.run(command, cwd=self._project, env=self.environment, capture_output=True, text=True, check=False)
            if done.returncode:
                raise BenchmarkFailed(done.stderr[-2000:])
            runs[group] = done.stdout.split()[0]
        store, next_death = GroupRuns(self.redis.client()), time.monotonic() + 5
        folders = [self._folder / "data/items" / group / run for group, run in runs.items()]

        def ended() -> bool:
            nonlocal next_death
            with suppress(redis.RedisError):  # it was killed
                records = store.all()
                if all(run in records and records[run].state.ended for run in runs.values()):
                    return all((one / "manifest.json").is_file() for one in folders)
                if kill and time.monotonic() > next_death:
                    next_death = time.monotonic() + random.uniform(*EVERY_S_CRAWLER)
                    self._kill(outcome.deaths)
            return False

        while not ended() and time.monotonic() < began + limit_s:  # what is not over then is lost, and is counted so
            time.sleep(0.5)
        outcome.seconds = time.monotonic() - began
        for run, folder in zip(runs.values(), folders, strict=True):
            found = store.members(run)
            outcome.members |= found
            outcome.rows |= {name: rows_of(folder / f"{name}.jsonl") for name in found}
        outcome.asked = Counter(log.read_bytes()[seen:].decode().splitlines())
        return outcome

    def _kill(self, deaths: Counter[str]) -> None:
        """Kill one crawler, and Redis or a worker if its time has come: from the main thread, with which the next one ends."""
        alive = [one for one in Registry(self.redis.client()).crawlers() if one.pid and psutil.pid_exists(one.pid)]
        if alive := [one for one in alive if self._died[one.spider] < MOST_DEATHS]:
            one = random.choice(alive)
            with suppress(ProcessLookupError):
                os.kill(one.pid or 0, signal.SIGKILL)
                self._died[one.spider] += 1
                deaths["crawlers"] += 1
        for what in [what for what, at in self._next_death.items() if time.monotonic() > at]:
            self._next_death[what] = time.monotonic() + EVERY_S[what]
            deaths["Redis" if what == "redis" else "workers"] += 1
            if what == "redis":
                self.redis.kill()
                self.redis.start()
            else:
                self._programs[what].kill()
                self._programs[what].wait()
                self.worker(what)


def chosen_members(folder: Path, night: Night, number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the members by name, and the entry of each host; half of them, if there are so many, have pages."""
    night.script(LIST, str(folder / "spiders.json"))
    hosts: dict[str, Any] = {}
    members: dict[str, Any] = {}
    others = [fault for fault in FAULTS if fault != "page"]
    known = json.loads((folder / "spiders.json").read_text())
    forms, pages_left, turn = {SITEMAP: 0, BLOB: 1, PAGE: 0, "": 2}, number // 2, 0
    for name, one in sorted(known.items(), key=lambda pair: (forms[pair[1]["form"]], pair[0])):
        found = {(urlsplit(url).hostname or "").encode("idna").decode() for url in one["urls"]}
        if len(found) != 1 or (host := found.pop()) in hosts or not host or len(one["urls"]) > 20:
            continue
        pages = pages_of(one["rules"], host)
        answers = one["form"] in (BLOB, PAGE) or len(pages) > 2
        if answers and pages_left:
            fault, pages_left = "page", pages_left - 1
        elif one["form"] and pages_left:
            continue
        else:
            fault, turn = others[turn % len(others)], turn + 1
        hosts[host] = {"fault": fault, "pages": pages, "form": one["form"], "key": one["key"], "names": one["names"]}
        if any(urlsplit(url).path == "/robots.txt" for url in one["urls"]):  # from there it finds the others
            hosts[host]["robots_first"] = host
        members[name] = {**one, "host": host, "fault": fault}
        if len(members) >= number:
            break
    return members, hosts


def compare(report: Report, title: str, right: dict[str, str], found: dict[str, Member]) -> None:
    """Add a table of verdicts, and a target."""
    pairs = Counter((verdict, str(found[name].verdict) if name in found else "lost") for name, verdict in right.items())
    report.table((title, "verdict", "members"), [(want, got, number) for (want, got), number in sorted(pairs.items())])
    same = sum(number for (want, got), number in pairs.items() if want == got)
    report.target(f"{title}: {same} of {len(right)} members have the right verdict (98 %)", same >= 0.98 * len(right))
    report.figures[title] = [
        f"{name} {want}: {found[name].verdict} ({found[name].reason})" if name in found else f"{name} {want}: lost"
        for name, want in right.items()
        if name not in found or found[name].verdict != want
    ]


def compare_rows(report: Report, night: Outcome, plain: dict[str, Plain], members: dict[str, Any]) -> None:
    """Add targets for the rows of the members' files, and for what the stub was asked for."""
    names = list(members)
    keyed = set(names[list(GROUPS).index("keyed") :: len(GROUPS)])
    missing, copies, copies_of_keys = {}, Counter[str](), Counter[str]()
    for name, one in plain.items():
        want, got = Counter(one.rows), Counter(night.rows.get(name, []))
        lacks, more = unpaired(want - got, got - want)
        if lacks:
            missing[name] = lacks[:2]
        (copies_of_keys if name in keyed else copies)[name] += len(more)
    report.figures["missing rows"] = missing
    report.figures["copies"] = {name: number for name, number in (copies + copies_of_keys).items() if number}
    rows = sum(len(one.rows) for one in plain.values())
    report.target(f"every one of {rows} items of plain Scrapy is there ({len(missing)} members lack some)", not missing)
    again = Counter({line: number - 1 for line, number in night.asked.items() if number > 1})
    by_host = Counter[str]()
    for line, number in again.items():
        by_host[line.partition(" ")[0]] += number
    asked_again = sum(by_host[members[name]["host"]] for name in plain)
    text = f"{copies.total()} copies of items without a key, not more than the {asked_again} pages that were asked for again"
    report.target(
        text, all(number <= by_host[members[name]["host"]] * most_items(members[name]) for name, number in copies.items())
    )
    report.target(f"{copies_of_keys.total()} copies of items with a key", not copies_of_keys.total())
    paths: dict[str, list[int]] = {}
    for line, number in night.asked.items():
        paths.setdefault(line.partition(" ")[0], []).append(number)
    twice = [name for name in plain if len(found := paths.get(members[name]["host"], [])) > 3 and min(found) > 1]
    report.figures["crawled twice"] = twice
    report.target(f"{len(twice)} members had each of their pages asked for twice", not twice)


def unpaired(lacks: Counter[str], more: Counter[str]) -> tuple[list[str], list[str]]:
    """Return the rows without those of one `ref`: of pages with the same one a spider keeps the first, by chance."""
    left = list(more.elements())
    missing = []
    for row in lacks.elements():
        same = next((one for one in left if json.loads(one).get("ref") == json.loads(row).get("ref")), None)
        if same is None:
            missing.append(row)
        else:
            left.remove(same)
    return missing, left


def most_items(member: dict[str, Any]) -> int:
    """Return the items of one page of the member's host."""
    return ITEMS if member["form"] == BLOB else 1


def changed_hosts(fine: list[str], members: dict[str, Any], hosts: dict[str, Any]) -> dict[str, Any]:
    """Return the table of the second night: each second member that was fine has one of the changes."""
    changes = dict(zip(fine, [*CHANGED, *[""] * len(CHANGED)] * len(fine), strict=False))
    changed = {members[name]["host"]: how for name, how in changes.items() if how}
    return {host: one | ({"fault": changed[host]} if host in changed else {}) for host, one in hosts.items()}


def main() -> None:
    """Run both nights, and report."""
    parser = options(__doc__)
    parser.add_argument("project", type=Path)
    parser.add_argument("python")
    parser.add_argument("--members", type=int, default=1000, help="spiders of the run (default: %(default)s)")
    parser.add_argument("--at-once", type=int, default=12, help="that crawl at a time (default: %(default)s)")
    parser.add_argument("--limit", type=float, default=3600, help="seconds of one night (default: %(default)s)")
    parser.add_argument("--no-deaths", action="store_true", help="kill nothing")
    parser.add_argument("--nights", type=int, choices=(1, 2), default=2)
    parser.add_argument("--folder", type=Path, help="keep logs and files here (default: a folder that is removed)")
    given = parser.parse_args()
    report = Report(title="A run of a public project", method=" ".join((__doc__ or "").split("\n\n")[-1].split()))
    with tempfile.TemporaryDirectory() as place:
        folder = given.folder.absolute() if given.folder else Path(place)
        folder.mkdir(exist_ok=True, parents=True)
        both_nights(report, folder, given)
    report.finish(given)


def both_nights(report: Report, folder: Path, given: Any) -> None:
    """Run them, and fill the report."""
    night = Night(folder, given.project.absolute(), given.python, given.at_once)
    members, hosts = chosen_members(folder, night, given.members)
    paged = {name: one for name, one in members.items() if one["fault"] == "page"}
    night.answer_as(hosts)
    with night.running(list(members)):
        wait_until((folder / REQUESTS).is_file, lambda: "the stub did not start", 60)
        plain = night.plain(paged, "plain")
        right = {name: plain[name].verdict() if name in paged else FAULTS[one["fault"]] for name, one in members.items()}
        first = night.run(given.limit, kill=not given.no_deaths)
        note(report, "first night", first)
        compare(report, "first night", right, first.members)
        lost = [name for name in members if name not in first.members]
        report.figures["lost"] = lost
        report.target(f"no member is lost ({len(lost)} of {len(members)})", not lost)
        compare_rows(report, first, plain, members)
        if given.nights == 2:
            report.finish(given)  # of the first one, should the second be ended
            fine = [name for name in paged if right[name] == "fine" and first.members[name].verdict is Verdict.FINE]
            night.answer_as(changed_hosts(fine, members, hosts))
            then = night.plain({name: paged[name] for name in fine}, "plain2")
            right |= {name: then[name].verdict(plain[name]) for name in fine}
            second = night.run(given.limit, kill=False)
            note(report, "second night", second)
            compare(report, "second night", right, second.members)


def note(report: Report, title: str, night: Outcome) -> None:
    """Add the figures of a night as a caveat."""
    deaths = ", ".join(f"{number} of {what}" for what, number in night.deaths.items()) or "none"
    report.caveats.append(
        f"The {title} took {night.seconds:.0f} s; {len(night.members)} members, {sum(night.asked.values())} requests, "
        f"{sum(map(len, night.rows.values()))} rows; SIGKILLs: {deaths}; load at its end {os.getloadavg()[0]:.0f}."
    )


if __name__ == "__main__":
    main()
