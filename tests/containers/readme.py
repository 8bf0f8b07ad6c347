"""The commands of README.md for containers, as printed, in a clone: image, fleet, forum at 100 %, page and Prometheus filled.

    python -m tests.containers.readme [--pictures docs/images] [--rows FILE]

Then `docker compose` config, scale and restart of that fleet, users of Redis from secrets, and down. Exit code 1: a command
failed, warned, or something is missing in the database. What this machine lacks is put right by a `docker` before the real one:
a build without a mirror of Debian, Compose as a separate program, and an image of Grafana, without which Grafana is left out,
which is said.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from . import drawn_dashboards, own_engine
from .__main__ import Rows, say
from .engine import ROOT, Failed, compose_command, docker, missing, run_script, wait
from .monitored import filled, photographed
from .report import Row

UP_S = 600.0
FILES = "docker compose -f docker-compose.yml -f deploy/compose.monitoring.yml --profile demo"
USERS = FILES.replace(" --profile", " -f deploy/compose.users.yml --profile")
GRAFANA = "grafana/grafana:12.1.1"
PICTURE, DASHBOARDS = "containers-page.png", "containers-dashboards.png"


def printed() -> list[str]:
    """The commands that README.md prints for containers, each as a separate line."""
    text = (ROOT / "README.md").read_text("utf-8").partition("**In containers,**")[2]
    block = re.search(r"((?:^    .*\n)+)", text, re.MULTILINE)
    assert block, "README.md prints no commands for containers"
    lines = re.sub(r"\\\n\s+", "", block[1]).splitlines()
    return [line.partition("  #")[0].strip() for line in lines]


@dataclass
class Clone:
    """A clone of the last commit, and the `docker` that its commands find."""

    folder: Path
    rows: Rows

    def run(self, name: str, command: str, limit_s: float = 1800) -> str:
        """One command, timed; what it wrote. Raises Failed, also where it warned."""
        begun = time.monotonic()
        environment = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}", "TRAWL_SITES_DIR": "./demo/sites"}
        done = run_script(command, self.folder / "trawl", environment, limit_s)
        warned = [line for line in done.stderr.splitlines() if "level=warn" in line.lower() or "obsolete" in line]
        self.rows.add(Row(kind="readme", name=name, seconds=time.monotonic() - begun, said="; ".join(warned)))
        if done.returncode or warned:
            raise Failed(f"{command}: exit {done.returncode}: {(done.stdout + done.stderr)[-800:]}")
        return done.stdout

    def compared(self, files: str) -> list[str]:
        """What the comparison with the forum says, table by table. Raises Failed where something is missing."""
        asked = "exec -T worker-control python -m demo.compare"
        words = " -f ... -f deploy/compose.users.yml" if files == USERS else ""
        return self.run(f"`docker compose{words} {asked.replace(' -T', '')}`", f"{files} {asked}").splitlines()

    def prepare(self) -> None:
        """Clone, and write the `docker` that stands before the real one."""
        subprocess.run(("git", "clone", "-q", "--shared", str(ROOT), str(self.folder / "trawl")), check=True)
        build = " ".join(own_engine.build_arguments())
        real = shutil.which("docker") or "docker"
        compose = " ".join(real if word == "docker" else word for word in compose_command())
        (self.folder / "bin").mkdir()
        program = self.folder / "bin/docker"
        program.write_text(
            f"""#!/bin/sh
case "$1" in
build) shift; exec {real} build {build} "$@" ;;
compose) shift; case "$*" in *" up "*) set -- "$@" {self.services(compose)} ;; esac; exec {compose} "$@" ;;
*) exec {real} "$@" ;;
esac
"""
        )
        program.chmod(0o755)

    def services(self, compose: str) -> str:
        """What `up` starts where Grafana's image cannot be had; "" where it can: all."""
        if docker("images", "-q", GRAFANA).strip():
            return ""
        say(f"no image {GRAFANA} is here: Grafana is left out")
        words = FILES.replace("docker compose", compose).split()
        known = {"TRAWL_REDIS_PASSWORD": "x", "FLOWER_BASIC_AUTH": "x:x", "GRAFANA_PASSWORD": "x"}
        found = subprocess.run(
            (*words, "config", "--services"), cwd=ROOT, env={**os.environ, **known}, capture_output=True, text=True, check=True
        )
        return " ".join(sorted(set(found.stdout.split()) - {"grafana"}))


def healthy() -> bool:
    """Whether every container of the project is."""
    words = ("ps", "-a", "--filter", "label=com.docker.compose.project=trawl", "--format", "{{.Status}}")
    states = docker(*words).splitlines()
    return bool(states) and all("(healthy)" in state for state in states)


def walk(clone: Clone, pictures: Path | None) -> None:
    """Every step, one after the other. Raises Failed."""
    begun = time.monotonic()
    clone.prepare()
    try:
        for command in printed():
            started = time.monotonic()  # of the last one: `up`
            clone.run(f"`{command}`", command)
        clone.rows.add(Row(kind="readme", name="until all are healthy", seconds=wait(healthy, "all are healthy", UP_S)))
        said, took = " · ".join(clone.compared(FILES)), time.monotonic() - begun
        clone.rows.add(Row(kind="readme", name="from the clone to a compared forum", seconds=took, said=said))
        clone.rows.add(Row(kind="readme", name="panels of the dashboards", said=filled("127.0.0.1")))
        if pictures and (chromium := shutil.which("chromium")):
            photographed(chromium, "http://127.0.0.1:9410/", pictures / PICTURE)
            drawn_dashboards.picture("127.0.0.1", time.monotonic() - started, pictures / DASHBOARDS, chromium)
        for words in ("config --quiet", "up -d --scale worker-detail=2", "restart exporter"):
            clone.run(f"`docker compose {words}`", f"{FILES} {words}")
        wait(healthy, "all are healthy", UP_S)
        clone.run("`deploy/new-users.sh`", "deploy/new-users.sh")
        clone.run("`docker compose -f ... -f deploy/compose.users.yml up -d`", f"{USERS} up -d")
        wait(healthy, "all are healthy", UP_S)
        clone.rows.add(Row(kind="readme", name="compared, with users", said=" · ".join(clone.compared(USERS))))
    finally:
        clone.run("`docker compose down --volumes`", f"{FILES} down --volumes")


def main() -> int:
    """Parse the arguments and walk."""
    parser = argparse.ArgumentParser(prog="python -m tests.containers.readme", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pictures", type=Path, help="a folder for a picture of the status page (with Chromium)")
    parser.add_argument("--rows", type=Path, help="add the measurements to this file of `python -m tests.containers --rows`")
    options = parser.parse_args()
    with own_engine.running(), tempfile.TemporaryDirectory(prefix="trawl-readme-") as name:
        if why := missing():
            say(f"skipped: {why}")
            return 0
        try:
            own_engine.base_images()
            walk(Clone(Path(name), Rows(options.rows or Path(name) / "rows.jsonl")), options.pictures)
        except Failed as failed:
            say(f"failed: {failed}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
