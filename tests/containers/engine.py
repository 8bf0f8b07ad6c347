"""Commands of docker and of its Compose, for one project of containers that is removed at the end."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
IMAGES = ("python:3.12-slim", "redis:7-alpine")
LIMIT_S = 300.0


class Failed(Exception):
    """A command of the engine failed, or what was waited for did not come."""


def missing() -> str | None:
    """Why no container can be run here; None where one can."""
    if shutil.which("docker") is None:
        return "there is no docker command"
    if subprocess.run(("docker", "info"), capture_output=True, check=False, timeout=60).returncode:
        return "no Docker engine answers (docker info)"
    return None if _compose() else "there is no Docker Compose"


def _compose() -> tuple[str, ...]:
    for words in (("docker-compose",), ("docker", "compose")):
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


@dataclass(frozen=True, kw_only=True)
class Project:
    """The compose file as a project of its own, with the demo's profile and sites, and no published ports."""

    folder: Path
    name: str = "trawl-containers"
    variables: dict[str, str] = field(default_factory=dict)

    def compose(self, *words: str, limit_s: float = LIMIT_S) -> str:
        """`docker compose WORDS`; its standard output."""
        override = self.folder / "override.yml"
        key = self.folder / "signing.key"
        if not key.exists():
            key.write_text(f"{secrets.token_hex(32)}\n")
        override.write_text(
            "services:\n  flower: {ports: !reset []}\n  exporter: {ports: !reset []}\n"
            f"secrets:\n  signing_key: {{file: {key}}}\n"
        )
        files = ("-f", str(ROOT / "docker-compose.yml"), "-f", str(override), "--profile", "demo", "-p", self.name)
        env = {**os.environ, "TRAWL_REDIS_PASSWORD": "of-a-test", "FLOWER_BASIC_AUTH": "a:of-a-test", **self.variables}
        env["TRAWL_SITES_DIR"] = str(ROOT / "demo/sites")
        return _run((*_compose(), *files, *words), None, limit_s, env)

    def containers(self, service: str | None = None) -> list[dict[str, Any]]:
        """`docker inspect` of each container, of one service or of all."""
        labels = [f"label=com.docker.compose.project={self.name}"]
        labels += [f"label=com.docker.compose.service={service}"] if service else []
        ids = docker("ps", "-aq", *(word for label in labels for word in ("--filter", label))).split()
        return json.loads(docker("inspect", *ids)) if ids else []

    def inside(self, code: str, service: str = "worker-control") -> str:
        """What this Python prints in the first container of a service."""
        return docker("exec", "-i", self.containers(service)[0]["Id"], "python", "-", given=code)

    def status(self) -> dict[str, Any]:
        """`trawl status --json`, which ends with 1 where something needs attention."""
        answer = docker("exec", self.containers("worker-control")[0]["Id"], "sh", "-c", "trawl status --json; true")
        return dict(json.loads(answer))

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

    def whole(self) -> bool:
        """Whether every container is healthy and every slot has a crawler that runs."""
        if self.unhealthy():
            return False
        try:
            status = self.status()
        except (Failed, ValueError, IndexError):
            return False
        running = sum(one["state"] == "running" for one in status["crawlers"])
        return running >= sum(one["desired"] for one in status["services"]) > 0


def wait(told: Callable[[], bool], what: str, limit_s: float = LIMIT_S) -> float:
    """Wait until it is so; seconds. Raises Failed."""
    begun = time.monotonic()
    while not told():
        if time.monotonic() - begun > limit_s:
            raise Failed(f"{what}: not within {limit_s:.0f} s")
        time.sleep(0.5)
    return time.monotonic() - begun
