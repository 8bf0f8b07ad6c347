"""Builds the image, crawls the demo forum in containers, breaks them one after the other, and compares: nothing may be lost.

    python -m tests.containers [--no-faults] [--no-build] [--only WORDS] [--rows FILE] [--report FILE]

Exit code 0: all reached, or no engine can run here (one line says so). 1: something is missing in the database or was not
whole again in time. Needs root for the faults that enter a container's network or fill its disk.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from . import faults, monitored, network_faults, node_faults, own_engine
from .engine import EARLIER, EXPORTER_IMAGE, PASSWORD, ROOT, Failed, Project, docker, missing, wait
from .network import address
from .node_faults import SIDE_BY_SIDE
from .report import Row, comparison, page
from .watching import ask, watch

WORKS_S = 8.0  # crawling between two faults
REST_S = 60.0  # how long the CPU time at rest is counted
UP_S = 600.0
WHOLE_S = 240.0  # a fleet that is not whole by then is counted as broken
DISK_MB = 256
COMPILED = """
import os, sys
specs = [module.__spec__ for module in list(sys.modules.values()) if getattr(module, '__spec__', None)]
print(*[one.name for one in specs if (one.origin or '').endswith('.py') and one.cached and not os.path.exists(one.cached)])
"""  # names of what has been imported and has no bytecode
AT_REST = "at rest"
FAULTS = faults.FAULTS | network_faults.FAULTS | node_faults.FAULTS


def main() -> int:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.containers", description=__doc__.partition("\n")[0])
    parser.add_argument("--no-faults", action="store_true", help="only crawl and compare")
    parser.add_argument("--no-build", action="store_true", help="take the image trawl:latest as it is")
    parser.add_argument(
        "--only", default="", help=f"faults ({AT_REST!r}: CPU time) whose name contains one of these words, with | between"
    )
    parser.add_argument("--picture", type=Path, help="a picture of the status page, once the forum is crawled (with Chromium)")
    parser.add_argument("--rows", type=Path, help="add each measurement to this file at once, and report what is in it already")
    parser.add_argument("--report", type=Path, help="write the measurements there, as Markdown")
    options = parser.parse_args()
    with own_engine.running():
        if why := missing():
            say(f"skipped: {why}")
            return 0
        return measure(options)


def measure(options: argparse.Namespace) -> int:
    """Build, run, report; the exit code."""
    names = (
        [] if options.no_faults else [name for name in (*FAULTS, AT_REST) if any(one in name for one in options.only.split("|"))]
    )
    with tempfile.TemporaryDirectory() as folder:
        rows = Rows(options.rows or Path(folder) / "rows.jsonl")
        try:
            if not options.no_build:
                build()
            if SIDE_BY_SIDE in names and not own_engine.earlier_image():
                names.remove(SIDE_BY_SIDE)
                say(f"no {EARLIER} in this clone: without {SIDE_BY_SIDE!r}")
            broken_rows = run(names, rows, options.picture)
        except Failed as failed:
            say(f"failed: {failed}")
            return 1
        if options.report:
            options.report.write_text(page(rows.read()))
    say(f"{len(names)} tried, {broken_rows} after which the fleet was not whole or the database not complete")
    return 1 if broken_rows else 0


def run(names: list[str], rows: Rows, picture: Path | None = None) -> int:
    """Crawl, break, compare; how many times something was not as it has to be."""
    bad = 0
    chosen = [name for name in names if name != AT_REST]
    if chosen or not names:
        with fleet(nodes=2 if chosen else 1, quick_checks=bool(chosen)) as (project, up_s):
            rows.add(Row(kind="up", name=f"{len(project.containers())} containers", seconds=up_s))
            bad += compared(project, rows, "before the faults")
            if picture and (chromium := shutil.which("chromium")):
                monitored.picture(project, picture, chromium)
            bad += sum(broken(project, rows, name) for name in chosen)
            if project.monitored:
                filled(project, rows)
    if AT_REST in names:  # with the health checks as they are shipped
        with fleet(nodes=2) as (project, _):
            at_rest(project, rows)
    return bad


def say(words: str) -> None:
    """One line, at once."""
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


class Rows:
    """What was measured, a line of JSON each, in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, row: Row) -> None:
        """Write it, and say it."""
        with self._path.open("a") as file:
            file.write(f"{json.dumps(row.__dict__)}\n")
        say(f"{row.kind}: {row.name}: {row.seconds:.1f} s; {row.said}; {row.compared}")

    def read(self) -> list[Row]:
        """All of the file; where one was measured again, only the last time."""
        found = [Row(**json.loads(line)) for line in self._path.read_text().splitlines()]
        return list({(row.kind, row.name): row for row in found}.values())


def build() -> None:
    """The image of this tree; stand-ins for its base images where these are neither here nor in reach."""
    begun = time.monotonic()
    own_engine.base_images()
    arguments = own_engine.build_arguments()
    docker("build", *arguments, "-t", "trawl:latest", str(ROOT), limit_s=1800)
    docker("build", *arguments, "--target", "exporter", "-t", EXPORTER_IMAGE, str(ROOT), limit_s=1800)
    say(f"built in {time.monotonic() - begun:.0f} s")
    for role in ("tasks", "workers.crawler.process", "monitoring.exporter"):
        if without := docker("run", "--rm", "--read-only", "trawl:latest", "python", "-c", f"import {role}\n{COMPILED}").strip():
            raise Failed(f"each process that imports {role} compiles {without}: packaging/bytecode.py makes bytecode")


@contextmanager
def fleet(nodes: int, *, quick_checks: bool = False) -> Iterator[tuple[Project, float]]:
    """Up until all are healthy and every slot has a crawler, and the seconds that took; removed with its volumes at the end."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as undone:
        project = Project(folder=Path(folder), nodes=nodes, monitored=monitored.available(), quick_checks=quick_checks)
        if nodes > 1:
            project.database = Path(undone.enter_context(small_disk(Path(folder))))
        project.prepare()
        undone.enter_context(project.slots)
        begun = time.monotonic()
        undone.callback(project.compose, "down", "-v", "--remove-orphans", "-t", "20")
        try:
            project.up()
            url = f"TRAWL_REDIS_URL=redis://:{PASSWORD}@redis:6379/0"
            named = ("--name", project.watcher, "--network", f"{project.name}_redis", "-e", url)
            words = ("run", "--rm", "--init", *named, "trawl:latest")
            project.watched = undone.enter_context(watch(*words))
            wait(project.whole, "all containers healthy and all crawlers running", UP_S)
            yield project, time.monotonic() - begun
        except Failed:
            say("; ".join(project.unhealthy()))
            say(project.compose("logs", "--tail", "8"))
            raise


@contextmanager
def small_disk(folder: Path) -> Iterator[str]:
    """A folder with a small separate file system, which belongs to the container's user."""
    image, mounted = folder / "disk", folder / "database"
    mounted.mkdir()
    with image.open("wb") as file:
        file.truncate(DISK_MB << 20)
    subprocess.run(("mkfs.ext4", "-q", "-m", "0", str(image)), check=True)
    subprocess.run(("mount", "-o", "loop", str(image), str(mounted)), check=True)
    try:
        subprocess.run(("chown", "10001:10001", str(mounted)), check=True)
        yield str(mounted)
    finally:
        subprocess.run(("umount", str(mounted)), check=True)


def compared(project: Project, rows: Rows, when: str) -> bool:
    """The database against the frozen forum; whether something is missing, twice or wrong."""
    row = comparison("compared", when, project.compare())
    rows.add(row)
    return row.failed


def filled(project: Project, rows: Rows) -> None:
    """How many panels of the dashboards have something to show."""
    said = monitored.filled(address(project.containers("prometheus")[0]))
    rows.add(Row(kind="panels", name="of the dashboards, by Prometheus in the compose network", said=said))


def broken(project: Project, rows: Rows, name: str) -> bool:
    """One fault under load; whether the fleet was not whole again in time, or rows are missing."""
    time.sleep(WORKS_S)
    pages = served(project)
    project.slots.forget()
    row = Row(kind="fault", name=name)
    try:
        row.said = FAULTS[name](project)
        row.seconds = wait(project.whole, f"whole after: {name}", WHOLE_S)
    except Failed as failed:
        row.said, row.failed = f"{row.said} {failed}".strip(), True
        say("; ".join(project.unhealthy()))
        say(project.compose("logs", "--tail", "12"))
    row.pages = served(project) - pages
    row.reduced_s, row.without_s = project.slots.fewer_s(project.desired()), project.slots.fewer_s(1)
    row.crowded_s = project.slots.crowded_s()
    try:
        after = comparison("", "", project.compare())
        row.compared, row.failed = after.compared, row.failed or after.failed or bool(row.crowded_s)
    except Failed as failed:
        row.compared, row.failed = str(failed), True
    rows.add(row)
    return row.failed


def at_rest(project: Project, rows: Rows) -> None:
    """Share of a core that each container uses while the forum stands still, health checks included: with boards that are
    scanned every ten seconds, and with none that is due. What asks for the status each second stands still: it is of the test.
    """
    with project.unwatched():
        _at_rest(project, rows)


def _at_rest(project: Project, rows: Rows) -> None:
    site = project.folder / "sites/demo.toml"
    usual = site.read_text()
    for name, interval_s in (("boards scanned every 10 s", 10), ("no board due", 36_000)):
        site.write_text(re.sub(r"(m(?:in|ax)_interval_s) = \S+", rf"\1 = {interval_s}", usual))
        ask(address(project.containers("forum")[0]), "/control", {"rate": 0})
        wait(lambda: _is_quiet(project), "the forum is read once, boards alone are asked for", WHOLE_S)
        before, begun, asked = project.cpu_s(), time.monotonic(), served(project)
        time.sleep(REST_S)
        after, took = project.cpu_s(), time.monotonic() - begun
        shares = {
            one: round(100 * (after[one] - before[one]) / took, 2) for one in sorted(after) if one in before and one != "forum-1"
        }
        say(f"{name}: {sum(shares.values()):.1f} % of a core, {(served(project) - asked) / took:.2f} pages a second")
        rows.add(Row(kind="rest", name=name, seconds=took, said=json.dumps(shares)))


def _is_quiet(project: Project) -> bool:
    """Return True if boards alone are read: each thread was read once, and the site file is in use everywhere."""
    before = ask(address(project.containers("forum")[0]), "/stats")
    time.sleep(WORKS_S)
    is_read = sum(before["served"].get("post", {}).values()) >= before["posts"]
    return is_read and served(project) - int(before["total"]) <= WORKS_S


def served(project: Project) -> int:
    """Pages that the forum has served."""
    return int(ask(address(project.containers("forum")[0]), "/stats")["total"])


if __name__ == "__main__":
    sys.exit(main())
