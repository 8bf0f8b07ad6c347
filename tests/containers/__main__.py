"""Builds the image, crawls the demo forum in containers, breaks them one after the other, and compares: nothing may be lost.

    python -m tests.containers [--no-faults] [--no-build] [--report FILE]

Exit code 0: all reached, or no engine can run here (one line says so). 1: something is missing in the database or was not
whole again in time. Needs root for the faults that enter a container's network or process.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .engine import HERE, IMAGES, ROOT, Failed, Project, docker, missing, wait
from .faults import FAULTS

WORKS_S = 10.0  # crawling between two faults
REST_S = 60.0  # how long the CPU time at rest is counted


def main() -> int:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.containers", description=__doc__.partition("\n")[0])
    parser.add_argument("--no-faults", action="store_true", help="only crawl and compare")
    parser.add_argument("--no-build", action="store_true", help="take the image trawl:latest as it is")
    parser.add_argument("--only", default="", help="faults whose name contains this")
    parser.add_argument("--report", type=Path, help="write the measurements there, as Markdown")
    options = parser.parse_args()
    if why := missing():
        say(f"skipped: {why}")
        return 0
    faults = {} if options.no_faults else {name: act for name, act in FAULTS.items() if options.only in name}
    try:
        if not options.no_build:
            build()
        with tempfile.TemporaryDirectory() as folder, fleet(Project(folder=Path(folder))) as (project, up_s):
            first = compared(project)
            rows = [broken(project, name) for name in faults]
            last = compared(project) if rows else first
            idle = at_rest(project)
    except Failed as failed:
        say(f"failed: {failed}")
        return 1
    if options.report:
        options.report.write_text(report(up_s, first, rows, last, idle))
    complete = all(table["complete"] for found in (first, last) for table in found["tables"].values())
    say(f"every row is stored once: {complete}; {len(rows)} faults")
    return 0 if complete else 1


def say(words: str) -> None:
    """One line, at once."""
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def build() -> None:
    """The image of this tree; stand-ins for its base images where these are neither here nor in reach."""
    begun = time.monotonic()
    for image in IMAGES:
        if not docker("images", "-q", image).strip():
            say(f"{image} is not here; tests/containers/base_images.sh makes a stand-in, or pull it")
            raise Failed(f"no image {image}")
    docker("build", "--network=host", "-t", "trawl:latest", str(ROOT), limit_s=1200)
    say(f"built in {time.monotonic() - begun:.0f} s, {size_mb()} MB")


def size_mb(image: str = "trawl:latest") -> int:
    """Size of an image with its base, MB."""
    return round(int(docker("image", "inspect", "-f", "{{.Size}}", image)) / 1e6)


@contextmanager
def fleet(project: Project) -> Iterator[tuple[Project, float]]:
    """Up until all are healthy and every slot has a crawler, and the seconds that took; removed with its volumes at the end."""
    begun = time.monotonic()
    try:
        project.compose("up", "-d", "--no-build")
        wait(project.whole, "all containers healthy and all crawlers running")
        up_s = time.monotonic() - begun
        say(f"whole {up_s:.0f} s after up")
        yield project, up_s
    except Failed:
        say("; ".join(project.unhealthy()))
        say(project.compose("logs", "--tail", "8"))
        raise
    finally:
        project.compose("down", "-v", "--remove-orphans", "-t", "20")


def compared(project: Project) -> dict[str, Any]:
    """The database against the frozen forum."""
    found = json.loads(project.inside((HERE / "coverage.py").read_text()).splitlines()[-1])
    say(json.dumps(found))
    return dict(found)


def broken(project: Project, name: str) -> tuple[str, float, int]:
    """One fault under load: its name, seconds until the fleet was whole again, the pages that the forum has served since."""
    time.sleep(WORKS_S)
    before = served(project)
    FAULTS[name](project)
    whole_s = wait(project.whole, f"whole after: {name}", 180)
    pages = served(project) - before
    say(f"{name}: whole {whole_s:.1f} s later, {pages} pages meanwhile")
    return name, whole_s, pages


def at_rest(project: Project) -> dict[str, float]:
    """Share of a core that each container uses while the forum stands still, health checks included; by container."""
    project.inside(
        "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:8765/control', b'{\"rate\": 0}', timeout=20).read()",
        "forum",
    )
    time.sleep(WORKS_S)
    before, begun = project.cpu_s(), time.monotonic()
    time.sleep(REST_S)
    after, took = project.cpu_s(), time.monotonic() - begun
    shares = {name: (after[name] - before[name]) / took for name in sorted(after) if name in before}
    say(f"at rest, per cent of a core: { {name: round(100 * share, 1) for name, share in shares.items()} }")
    return shares


def served(project: Project) -> int:
    """Pages that the forum has served."""
    code = "import json, urllib.request\nprint(json.load(urllib.request.urlopen('http://127.0.0.1:8765/stats'))['total'])"
    return int(project.inside(code, "forum"))


def report(
    up_s: float, first: dict[str, Any], rows: list[tuple[str, float, int]], last: dict[str, Any], idle: dict[str, float]
) -> str:
    """The page of benchmarks/results."""
    base = size_mb(IMAGES[0])
    versions = docker("version", "-f", "{{.Server.Version}}").strip()
    lines = [
        "# The fleet in containers",
        "",
        f'Docker {versions}, `docker compose --profile demo up` of this tree on one machine of 2 cores. "Whole" is when every',
        "container is healthy again and every slot has a crawler that runs, counted from the end of the fault; looking takes",
        "about a second. At the end the forum is frozen, every thread is read once more, and the database is compared with it.",
        "",
        "- Made by: `make test-containers`",
        f"- Image: {size_mb()} MB, of which the base {base} MB",
        f"- From `up` to a whole fleet: {up_s:.0f} s",
        *(_told("Before the faults", first), _told("After the faults", last)),
        "",
        "| fault | whole again, s | pages served meanwhile |",
        "|---|---|---|",
        *(f"| {name} | {whole_s:.1f} | {pages} |" for name, whole_s, pages in rows),
    ]
    lines += ["", "While the forum stands still, health checks included:", "", "| container | of a core, % |", "|---|---|"]
    lines += [f"| {name} | {100 * share:.1f} |" for name, share in idle.items()]
    lines += [f"| all but forum and redis | {100 * sum(v for k, v in idle.items() if k[:5] not in ('forum', 'redis')):.1f} |"]
    return "\n".join(lines) + "\n"


def _told(when: str, found: dict[str, Any]) -> str:
    tables = (
        f"{name} {one['expected']} shown, {one['missing']} lost, {one['duplicates']} stored twice"
        for name, one in found["tables"].items()
    )
    return f"- {when}: {'; '.join(tables)}"


if __name__ == "__main__":
    sys.exit(main())
