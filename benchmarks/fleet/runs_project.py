"""A run over a public project's spiders against a stub of the internet, with deaths, on two nights.

    python -m benchmarks.fleet.runs_project PROJECT PYTHON [--members 1000] [--at-once 12] [--page FILE]

PROJECT is the folder of a Scrapy project (alltheplaces), PYTHON an interpreter that has its packages and Scrapy; nothing is
fetched. A proxy on this machine answers for each host: pages, 404, 403, 429, a challenge, silence, redirects to another host,
errors of the server, a closed port, robots.txt that forbids all. The right verdict follows from the answer; for pages, it is what
plain Scrapy makes of them in one process: items, none, or exceptions. A fleet of two workers crawls the run while crawlers, one
worker and Redis are killed. On the second night some pages have lost a field, most of their items, or their markup.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any
from urllib.parse import urlsplit

import psutil

from benchmarks.support.report import BenchmarkFailed, Report, options
from redis_components.embedded.die_with_parent import tied
from redis_components.embedded.files import free_port
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from workers.process.run_module import own_module
from workers.state.group_runs import GroupRuns
from workers.state.registry import Registry

ROOT = Path(__file__).parents[2]
FAULTS = {
    "page": "",
    "gone": "moved",
    "forbidden": "refused",
    "busy": "refused",
    "challenge": "wall",
    "silent": "unreachable",
    "elsewhere": "moved",
    "broken": "unreachable",
    "closed": "unreachable",
    "robots": "robots",
}
"""The answers of a host, and the verdict on its spider."""
CHANGED = {"no_phone": "field_gone", "few": "fewer_items", "no_markup": "no_items"}
"""Those of the second night, of hosts whose spiders were fine."""
ELSEWHERE = "parked.example"
TYPES = [
    *("LocalBusiness", "Store", "Restaurant", "Hotel", "BankOrCreditUnion", "GroceryStore", "Hospital", "ClothingStore"),
    *("SportingGoodsStore", "FastFoodRestaurant", "Pharmacy", "Dentist", "GasStation", "AutoRepair", "ExerciseGym", "Bakery"),
]
LIST = """
import importlib, json, pkgutil, sys
from scrapy.utils.project import get_project_settings
from scrapy.utils.spider import iter_spider_classes
settings, found = get_project_settings(), {}
for name in settings.getlist("SPIDER_MODULES"):
    for one in pkgutil.walk_packages(importlib.import_module(name).__path__, name + "."):
        try:
            for cls in iter_spider_classes(importlib.import_module(one.name)):
                start, urls = cls.start.__qualname__, getattr(cls, "start_urls", None)
                rules = []
                if start == "SitemapSpider.start" and any(base.__name__ == "StructuredDataSpider" for base in cls.__mro__):
                    urls, rules = cls.sitemap_urls, [rule for rule, call in cls.sitemap_rules if call == "parse_sd"]
                if cls.custom_settings or start not in ("Spider.start", "SitemapSpider.start"):
                    continue
                if urls and all(isinstance(one, str) for one in [*urls, *rules]):
                    found[cls.name] = {"module": cls.__module__, "urls": list(urls), "rules": rules}
        except BaseException:
            continue
json.dump(found, open(sys.argv[1], "w"))
"""
PLAIN = """
import asyncio, json, sys
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.utils.project import get_project_settings
settings, (given, out, more) = get_project_settings(), sys.argv[1:]
settings.setdict(json.loads(more), priority="cmdline")
names, results = json.load(open(given)), {}
settings.set("SPIDER_MODULES", [one["module"] for one in names.values()], priority="cmdline")
process = AsyncCrawlerProcess(settings)
async def all_of_them():
    for name in names:
        crawler = process.create_crawler(name)
        await process.crawl(crawler)
        stats = crawler.stats.get_stats()
        raised = sum(number for stat, number in stats.items() if stat == "spider_exceptions/count")
        results[name] = [stats.get("item_scraped_count", 0), raised, stats.get("response_received_count", 0)]
    json.dump(results, open(out, "w"))
from twisted.internet import reactor
from scrapy.utils.defer import deferred_from_coro
reactor.callWhenRunning(lambda: deferred_from_coro(all_of_them()).addBoth(lambda _: reactor.stop()))
process.start(stop_after_crawl=False)
"""


def example(pattern: Any, more: int) -> str:
    """Return a text that the parsed pattern matches, with so many more of what may be repeated."""
    text = ""
    for kind, value in pattern:
        match str(kind):
            case "LITERAL":
                text += chr(value)
            case "IN":
                text += "" if str(value[0][0]) == "NEGATE" and len(text) > 200 else _one_of(value)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                low, high, inner = value
                text += example(inner, more) * min(int(high), low + more)
            case "SUBPATTERN":
                text += example(value[3], more)
            case "BRANCH":
                text += example(value[1][0], more)
            case "ANY" | "NOT_LITERAL" | "CATEGORY":
                text += "a"
    return text


def _one_of(choices: Any) -> str:
    kind, value = choices[0]
    if str(kind) == "RANGE":
        return chr(value[0])
    if str(kind) == "LITERAL":
        return chr(value)
    return "1" if "DIGIT" in str(value) and "NOT" not in str(value) else "b"


def pages_of(one: dict[str, Any], host: str) -> list[str]:
    """Return addresses of a host's pages that a sitemap spider's rules lead to."""
    found = []
    for rule in one["rules"][:1]:
        for more in range(1, 5):
            path = example(sre_parser.parse(rule), more)
            url = path if path.startswith("http") else f"https://{host}/{path.lstrip('/')}"
            if re.search(rule, url) and urlsplit(url).hostname == host:
                found.append(url)
    return list(dict.fromkeys(found))


def page(fault: str, path: str) -> str:
    """Return a page of a business as structured data; `fault` is one of `CHANGED`, or another one."""
    if fault == "no_markup":
        return "<html><body><p>A new layout.</p></body></html>"
    number = len(path)
    address = {"@type": "PostalAddress", "streetAddress": f"{number} High Street", "addressLocality": "Bath"}
    shop = {"@context": "https://schema.org", "@type": TYPES, "name": f"Shop {number}", "address": address}
    shop |= {"geo": {"@type": "GeoCoordinates", "latitude": 51.4 + number / 100, "longitude": -2.3}}
    shop |= {} if fault == "no_phone" else {"telephone": "+44 1225 550000"}
    markup = f'<script type="application/ld+json">{json.dumps(shop)}</script>'
    return f"<html><head>{markup}</head><body></body></html>"


def answer(fault: str, path: str, pages: list[str]) -> tuple[int, str, dict[str, str]]:
    """Return status, body and headers."""
    if path == "/robots.txt":
        if fault == "robots":
            return 200, "User-agent: *\nDisallow: /\n", {"Content-Type": "text/plain"}
        maps = f"Sitemap: https://{urlsplit(pages[0]).hostname}/sitemap.xml\n" if pages and fault in (*CHANGED, "page") else ""
        return (200, f"User-agent: *\nDisallow:\n{maps}", {"Content-Type": "text/plain"})
    statuses = {"gone": 404, "forbidden": 403, "busy": 429, "broken": 500}
    if fault in statuses:
        return statuses[fault], "no", {"Retry-After": "1"} if fault == "busy" else {}
    if fault == "challenge":
        return 200, '<html><body><script id="anubis_challenge">{}</script></body></html>', {}
    if fault == "elsewhere":
        return 302, "", {"Location": f"http://{ELSEWHERE}/"}
    if pages and (path.endswith((".xml", ".gz")) or "sitemap" in path):
        urls = "".join(f"<url><loc>{url}</loc></url>" for url in pages[: 1 if fault == "few" else 9])
        space = "http://www.sitemaps.org/schemas/sitemap/0.9"
        return 200, f'<?xml version="1.0"?><urlset xmlns="{space}">{urls}</urlset>', {"Content-Type": "text/xml"}
    return 200, page(fault, path) if fault in (*CHANGED, "page") else "<html><body>for sale</body></html>", {}


class Internet:
    """A proxy that answers for all hosts; `table` is a file with the fault of each."""

    def __init__(self, table: Path, certificate: Path) -> None:
        self._table = table
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate)

    async def serve(self, port: int) -> None:
        """Serve for ever."""
        await (await asyncio.start_server(self._client, "127.0.0.1", port)).serve_forever()

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, ssl.SSLError, ValueError):
            host = ""
            while line := await reader.readline():
                method, target, _ = line.decode("latin-1").split()
                while (await reader.readline()).strip():
                    pass
                if method == "CONNECT":
                    host = target.partition(":")[0]
                    if self._of(host)[0] == "closed":
                        break
                    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
                    await writer.drain()
                    await writer.start_tls(self._context)
                    continue
                url = urlsplit(target)
                await self._answer(writer, url.hostname or host, url.path)
        writer.close()

    def _of(self, host: str) -> tuple[str, list[str]]:
        fault, pages = json.loads(self._table.read_text()).get(host, ("", []))
        return fault, pages

    async def _answer(self, writer: asyncio.StreamWriter, host: str, path: str) -> None:
        fault, pages = self._of(host)
        if fault == "silent":
            await asyncio.sleep(60)
        if fault == "closed":
            raise ConnectionResetError
        status, body, headers = answer(fault, path, pages)
        head = {"Content-Type": "text/html", **headers, "Content-Length": str(len(body.encode()))}
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        writer.write(f"HTTP/1.1 {status} X\r\n{lines}\r\n{body}".encode())
        await writer.drain()


def write_certificate(file: Path) -> None:
    """Write a key and a certificate for any host: crawlers do not check it, as Scrapy does not."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "stub")])
    begin, builder = datetime.now(UTC), x509.CertificateBuilder().subject_name(name).issuer_name(name)
    builder = builder.public_key(key.public_key()).serial_number(1).not_valid_before(begin).not_valid_after(begin + timedelta(9))
    form = serialization.PrivateFormat.PKCS8
    secret = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    file.write_bytes(secret + builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))


class Night:
    """The project, its fleet, and the stub."""

    def __init__(self, folder: Path, project: Path, python: str, at_once: int) -> None:
        self._folder, self._project, self._python = folder, project, python
        self._at_once = at_once
        self.redis = RedisServer(aof=True)
        self._programs: list[subprocess.Popen[bytes]] = []
        self.table, self.port = folder / "hosts.json", free_port()
        self.settings = {"DOWNLOAD_DELAY": 0, "DOWNLOAD_TIMEOUT": 3, "RETRY_TIMES": 1, "LOG_LEVEL": "INFO", "FEEDS": {}}

    @contextmanager
    def running(self, members: list[str]) -> Iterator[None]:
        """Run the stub, Redis, beat and two workers."""
        proxy, toml = f"http://127.0.0.1:{self.port}", self._folder / "trawl.toml"
        settings = "\n".join(f"{name} = {json.dumps(value)}" for name, value in self.settings.items() if name != "FEEDS")
        group = f"[groups.night]\nspiders = {json.dumps(members)}\nat_once = {self._at_once}"
        toml.write_text(f'{group}\n[groups.night.settings]\n{settings}\nALLOW_PRIVATE_ADDRESSES = "127.0.0.1"\n')
        write_certificate(self._folder / "stub.pem")
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
        stub = [sys.executable, "-m", "benchmarks.fleet.runs_project", "--stub", str(self.port), str(self._folder)]
        try:
            self._start("stub", stub, cwd=ROOT)
            self.worker("a"), self.worker("b")
            self._start("beat", [self._python, "-m", "celery", "-A", "tasks", "beat"])
            yield
        finally:
            for one in self._programs:
                one.kill()
                one.wait()
            self.redis.close()

    def worker(self, name: str) -> subprocess.Popen[bytes]:
        """Start a worker."""
        return self._start(name, [self._python, "-m", "celery", "-A", "tasks", "worker", "-n", f"{name}@stub"])

    def _start(self, name: str, command: list[str], cwd: Path | None = None) -> subprocess.Popen[bytes]:
        with (self._folder / f"{name}.log").open("ab") as log:
            tied_command, place = tied(*command), cwd or self._project
            self._programs.append(subprocess.Popen(tied_command, cwd=place, env=self.environment, stdout=log, stderr=log))
        return self._programs[-1]

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
        if done.returncode:
            raise BenchmarkFailed(done.stderr[-2000:])

    def plain(self, members: dict[str, Any]) -> dict[str, list[int]]:
        """Return the items, exceptions and pages of each spider by plain Scrapy, in one process."""
        given, out = self._folder / "given.json", self._folder / "plain.json"
        given.write_text(json.dumps(members))
        proxy = f"http://127.0.0.1:{self.port}"
        self.script(PLAIN, str(given), str(out), json.dumps(self.settings), http_proxy=proxy, https_proxy=proxy)
        found: dict[str, list[int]] = json.loads(out.read_text())
        return found

    def run(self, limit_s: float, deaths: Counter[str] | None = None) -> dict[str, Any]:
        """Run the group to its end, and return its members."""
        command = own_module("cli.main", "run", "--group", "night", python=self._python)
        started = subprocess.run(command, cwd=self._project, env=self.environment, capture_output=True, text=True, check=False)
        if started.returncode:
            raise BenchmarkFailed(started.stderr[-2000:])
        run, store, over = started.stdout.split()[0], GroupRuns(self.redis.client()), threading.Event()
        killer = threading.Thread(target=self._kill, args=(over, deaths)) if deaths is not None else None
        if killer:
            killer.start()

        def ended() -> bool:
            found = store.all().get(run)
            return found is not None and found.state.ended

        try:
            wait_until(ended, lambda: str(store.all().get(run)), limit_s, every_s=0.5)
        finally:
            over.set()
            if killer:
                killer.join()
        return {**store.members(run)}

    def _kill(self, over: threading.Event, deaths: Counter[str]) -> None:
        began, steps = time.monotonic(), {"worker": 20.0, "redis": 40.0}
        while not over.wait(random.uniform(1, 4)):
            with suppress(Exception):  # Redis may be away
                pids = [one.pid for one in Registry(self.redis.client()).crawlers() if one.pid and psutil.pid_exists(one.pid)]
                if pids:
                    os.kill(random.choice(pids), signal.SIGKILL)
                    deaths["crawlers"] += 1
            for what in [what for what, at in steps.items() if time.monotonic() - began > at]:
                del steps[what]
                deaths[what] += 1
                if what == "redis":
                    self.redis.kill()
                    self.redis.start()
                else:
                    self._programs[1].kill()
                    self.worker("c")


def chosen_members(folder: Path, night: Night, number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the members by name, and fault and pages of each host; half of them, if there are so many, have pages."""
    night.script(LIST, str(folder / "spiders.json"))
    hosts: dict[str, Any] = {}
    members: dict[str, Any] = {}
    others = [fault for fault in FAULTS if fault != "page"]
    known = json.loads((folder / "spiders.json").read_text())
    for name, one in sorted(known.items(), key=lambda pair: not pair[1]["rules"]):
        found = {urlsplit(url).hostname or "" for url in one["urls"]}
        if len(found) != 1 or (host := found.pop()) in hosts or len(one["urls"]) > 20:
            continue
        pages = pages_of(one, host)
        fault = "page" if len(pages) > 2 and len(members) < number // 2 else others[len(members) % len(others)]
        if one["rules"] and fault != "page" and len(members) < number // 2:
            continue
        hosts[host] = fault, pages
        members[name] = {**one, "host": host, "fault": fault}
        if len(members) >= number:
            break
    return members, hosts


def wanted(one: dict[str, Any], plain: dict[str, list[int]], name: str) -> str:
    """Return the right verdict on a member of the first night."""
    if one["fault"] != "page":
        return FAULTS[one["fault"]]
    items, raised, pages = plain.get(name, [0, 0, 0])
    if raised and (not items or 2 * raised > pages):
        return "crashed"
    return "fine" if items else "no_items"


def compare(report: Report, title: str, right: dict[str, str], found: dict[str, Any]) -> None:
    """Add a table of verdicts, and a target."""
    pairs = Counter((verdict, str(found[name].verdict) if name in found else "lost") for name, verdict in right.items())
    report.table((title, "verdict", "members"), [(want, got, number) for (want, got), number in sorted(pairs.items())])
    same = sum(number for (want, got), number in pairs.items() if want == got)
    report.target(f"{title}: {same} of {len(right)} members have the right verdict (98 %)", same >= 0.98 * len(right))
    wrong = [f"{name} {want}: {found[name].verdict} ({found[name].reason})" for name, want in right.items() if name in found]
    report.figures[title] = [one for one, want in zip(wrong, right.values(), strict=False) if f": {want} (" not in one][:60]


def main() -> None:
    """Run both nights, and report."""
    if sys.argv[1:2] == ["--stub"]:
        port, folder = int(sys.argv[2]), Path(sys.argv[3])
        asyncio.run(Internet(folder / "hosts.json", folder / "stub.pem").serve(port))
    parser = options(__doc__)
    parser.add_argument("project", type=Path)
    parser.add_argument("python")
    parser.add_argument("--members", type=int, default=1000, help="spiders of the run (default: %(default)s)")
    parser.add_argument("--at-once", type=int, default=12, help="that crawl at a time (default: %(default)s)")
    parser.add_argument("--limit", type=float, default=3600, help="seconds of one night (default: %(default)s)")
    given = parser.parse_args()
    report = Report(title="A run of a public project", method=" ".join((__doc__ or "").split("\n\n")[-1].split()))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        night = Night(folder, given.project.absolute(), given.python, given.at_once)
        members, hosts = chosen_members(folder, night, given.members)
        night.table.write_text(json.dumps(hosts))
        with night.running(list(members)):
            time.sleep(3)
            plain = night.plain({name: one for name, one in members.items() if one["fault"] == "page"})
            right = {name: wanted(one, plain, name) for name, one in members.items()}
            deaths: Counter[str] = Counter()
            begun = time.monotonic()
            first = night.run(given.limit, deaths)
            seconds = time.monotonic() - begun
            compare(report, "first night", right, first)
            lost = {name: len(members) for name in members if name not in first}
            report.target(f"no member lost or run twice ({len(lost)} of {len(members)})", not lost and len(first) == len(members))
            fewer = [name for name, (items, *_) in plain.items() if name in first and first[name].items < items]
            report.target(f"every item of plain Scrapy ({len(fewer)} members have fewer)", not fewer)
            fine = [name for name, verdict in right.items() if verdict == "fine" and first[name].verdict == "fine"]
            changed = dict(zip(fine, [*CHANGED, *[""] * 3] * len(fine), strict=False))
            night.table.write_text(
                json.dumps(
                    hosts | {one: (how, hosts[one][1]) for name, how in changed.items() if how and (one := members[name]["host"])}
                )
            )
            second = night.run(given.limit)
            compare(report, "second night", right | {name: CHANGED[how] for name, how in changed.items() if how}, second)
    report.caveats.append(f"The first night took {seconds:.0f} s. Killed during it: {dict(deaths)}.")
    report.finish(given)


if __name__ == "__main__":
    main()
