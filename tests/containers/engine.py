"""Commands of docker and of its Compose, for one project of containers that is removed at the end."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.crawler_watch import CrawlerWatch

from .watching import Watch

ROOT = Path(__file__).parents[2]
COMPARE = "python -m demo.compare --json --as-stored; true"  # its exit code is in its answer
IMAGES = ("python:3.12-slim", "redis:7-alpine")
EXPORTER_IMAGE = "trawl-exporter:latest"
EARLIER, EARLIER_IMAGE = "da937d14", "trawl:earlier"  # an earlier commit, whose crawlers work next to this tree's
LIMIT_S = 300.0
PASSWORD = "of-a-test"
MARK = ("TRAWL_REDIS_URL", f"redis://:{PASSWORD}@redis:6379/0")  # by which crawler processes of a test are known
LOOK_S = 0.1  # between two looks at who is in which slot


class Failed(Exception):
    """A command of the engine failed, or what was waited for did not come."""


def run_script(script: str, folder: Path, environment: Mapping[str, str], limit_s: float) -> subprocess.CompletedProcess[str]:
    """A script of a page or of a pipeline's job, in `folder`, under `sh -e`; what it wrote, and its exit code."""
    return subprocess.run(
        ("sh", "-ec", script), cwd=folder, env=environment, capture_output=True, text=True, timeout=limit_s, check=False
    )


def missing() -> str | None:
    """Why no container can be run here; None where one can."""
    if shutil.which("docker") is None:
        return "there is no docker command"
    if subprocess.run(("docker", "info"), capture_output=True, check=False, timeout=60).returncode:
        return "no Docker engine answers (docker info)"
    return None if compose_command() else "there is no Docker Compose"


def compose_command() -> tuple[str, ...]:
    """What `docker compose` is here; empty where there is none."""
    for words in (("docker-compose",), ("docker", "compose"), (str(ROOT / ".venv-containers/bin/docker-compose"),)):
        if shutil.which(words[0]) and not subprocess.run((*words, "version"), capture_output=True, check=False).returncode:
            return words
    return ()


def docker(*words: str, given: str | None = None, limit_s: float = LIMIT_S) -> str:
    """Its standard output; raises Failed with the last line of what it complained."""
    return _run(("docker", *words), given, limit_s)


def _run(words: tuple[str, ...], given: str | None, limit_s: float, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(words, input=given, capture_output=True, text=True, check=False, timeout=limit_s, env=env, cwd=ROOT)
    if done.returncode:
        raise Failed(f"{' '.join(words[:6])} ...: exit {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout


@dataclass(kw_only=True)
class Project:
    """The compose file as a project of its own, with the demo's profile and sites, and no published ports."""

    folder: Path
    name: str = "trawl-containers"
    variables: dict[str, str] = field(default_factory=dict)
    nodes: int = 1
    """Containers of each service that hosts crawlers."""
    database: Path | None = None
    """A folder that is the volume of the database: with a separate file system it can be filled."""
    monitored: bool = False
    """Whether Prometheus of deploy/compose.monitoring.yml is started, too."""
    watched: Watch = field(default_factory=Watch)
    quick_checks: bool = False
    """Whether health is asked for every five seconds: an engine before 25 does not know `start_interval`."""
    slots: CrawlerWatch = field(default_factory=lambda: CrawlerWatch(mark=MARK, look_s=LOOK_S))

    def prepare(self) -> None:
        """Write what is particular to this project: a key, the demo's site file, and what is laid over the compose file."""
        (self.folder / "signing.key").write_text(f"{secrets.token_hex(32)}\n")
        (self.folder / "sites").mkdir()
        shutil.copy(ROOT / "demo/sites/demo.toml", self.folder / "sites")
        for path in (self.folder, self.folder / "sites"):
            path.chmod(0o755)  # the container's user is another one
        override: dict[str, Any] = {
            "services": {
                "worker-list": {"deploy": {"replicas": self.nodes}},
                "worker-detail": {"deploy": {"replicas": self.nodes}},
                "forum": {"image": "trawl:latest"},  # stays as it is when another image is rolled out
                "exporter": {"image": EXPORTER_IMAGE},
            },
            "secrets": {"signing_key": {"file": str(self.folder / "signing.key")}},
        }
        if self.quick_checks:
            for name in ("redis", "worker-list", "worker-detail", "worker-control", "beat", "flower", "exporter"):
                override["services"].setdefault(name, {})["healthcheck"] = {"interval": "5s"}
        if self.database:
            bound = {"type": "none", "o": "bind", "device": str(self.database)}
            override["volumes"] = {"database": {"driver_opts": bound}}
        published = ("flower", "exporter", *(("prometheus",) if self.monitored else ()))
        unpublished = "".join(f"  {name}: {{ports: !reset []}}\n" for name in published)
        if self.monitored:
            override["services"]["grafana"] = {"profiles": ["never"]}  # no stand-in for its image
        (self.folder / "ports.yml").write_text(f"services:\n{unpublished}")
        (self.folder / "override.yml").write_text(json.dumps(override))

    def compose(self, *words: str, limit_s: float = LIMIT_S) -> str:
        """`docker compose WORDS`; its standard output."""
        laid_over = [word for name in ("ports.yml", "override.yml") for word in ("-f", str(self.folder / name))]
        more = ("-f", str(ROOT / "deploy/compose.monitoring.yml")) if self.monitored else ()
        files = ("-f", str(ROOT / "docker-compose.yml"), *more, *laid_over, "--profile", "demo", "-p", self.name)
        secret = {"TRAWL_REDIS_PASSWORD": PASSWORD, "FLOWER_BASIC_AUTH": f"a:{PASSWORD}", "GRAFANA_PASSWORD": PASSWORD}
        env = {**os.environ, **secret, **self.variables}
        env["TRAWL_SITES_DIR"] = str(self.folder / "sites")
        return _run((*compose_command(), *files, *words), None, limit_s, env)

    def up(self) -> None:
        """Everything, in the background, with the images that are here."""
        self.compose("up", "-d", "--no-build")

    def containers(self, service: str | None = None) -> list[dict[str, Any]]:
        """`docker inspect` of each container, of one service (by number) or of all."""
        labels = [f"label=com.docker.compose.project={self.name}"]
        labels += [f"label=com.docker.compose.service={service}"] if service else []
        ids = docker("ps", "-aq", *(word for label in labels for word in ("--filter", label))).split()
        found = json.loads(docker("inspect", *ids)) if ids else []
        return sorted(found, key=lambda one: one["Name"])

    def host(self, service: str) -> dict[str, Any]:
        """The container of a service that hosts most of its crawlers."""
        mine = self.containers(service)
        hosts = self.watched.seen[-1].hosts if self.watched.seen else ()
        return max(mine, key=lambda one: hosts.count(one["Id"][:12]))

    @property
    def watcher(self) -> str:
        """Name of the container in which `trawl status --watch` runs."""
        return f"{self.name}-watch"

    @contextmanager
    def unwatched(self) -> Iterator[None]:
        """The watcher stands still within the block."""
        docker("pause", self.watcher)
        try:
            yield
        finally:
            docker("unpause", self.watcher)

    def compare(self) -> str:
        """What the comparison of the database with the forum printed."""
        return docker("exec", self.containers("worker-control")[0]["Id"], "sh", "-c", COMPARE, limit_s=600)

    def unhealthy(self) -> list[str]:
        """Names of the containers that do not run, or whose health check has not passed."""
        return [
            f"{one['Name'].lstrip('/')} {one['State']['Status']} {one['State'].get('Health', {}).get('Status', '')}"
            for one in self.containers()
            if one["State"].get("Health", {}).get("Status") != "healthy"
        ]

    def cpu_s(self) -> dict[str, float]:
        """CPU time that each container has used since its start, s, by name; control groups of version 1 and 2."""
        code = "cat /sys/fs/cgroup/cpuacct/cpuacct.usage 2>/dev/null || sed -n 's/^usage_usec //p;1q' /sys/fs/cgroup/cpu.stat"
        used = {one["Name"].lstrip("/"): docker("exec", one["Id"], "sh", "-c", code).strip() for one in self.containers()}
        version_1 = "cpuacct" in Path("/proc/self/cgroup").read_text()
        return {name.removeprefix(f"{self.name}-"): int(value) / (1e9 if version_1 else 1e6) for name, value in used.items()}

    def processes(self, container: str) -> list[int]:
        """Pids of all processes of a container, as this machine counts them."""
        return [int(pid) for pid in docker("top", container, "-eo", "pid").split()[1:]]

    def whole(self) -> bool:
        """Whether every container is healthy and every slot has a crawler that runs, by /proc and by `trawl status`."""
        return len(self.slots.occupied()) >= self.desired() and self.watched.whole() and not self.unhealthy()

    def desired(self) -> int:
        """Crawlers that the fleet should have."""
        return max((one.desired for one in self.watched.seen), default=1)


def wait(told: Callable[[], bool], what: str, limit_s: float = LIMIT_S) -> float:
    """Wait until it is so; seconds. Raises Failed."""
    begun = time.monotonic()
    while not told():
        if time.monotonic() - begun > limit_s:
            raise Failed(f"{what}: not within {limit_s:.0f} s")
        time.sleep(0.5)
    return time.monotonic() - begun
