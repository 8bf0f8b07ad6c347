"""The services of docker-compose.yml as local processes: each one's real command with its real environment.

Docker is replaced by a table: what a service would find at a host name, a port or a path is found on loopback, at a free port,
in a temporary folder. Nothing else is changed.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

import redis

from redis_components.embedded.files import free_port
from redis_components.embedded.server import choose
from tests.support.compose_file import ROOT, ComposeService, image_environment, services
from tests.support.fleet import Program
from tests.support.processes import wait_until

MARK = "TRAWL_TEST_COMPOSE"


class ComposeProcesses:
    """All services, of every profile. `up` starts them and waits until each is healthy; leaving the block stops them.

    with ComposeProcesses(tmp_path, {"TRAWL_REDIS_PASSWORD": "...", ...}) as fleet:
        fleet.up()
    """

    def __init__(self, folder: Path, given: Mapping[str, str]) -> None:
        self.folder = folder
        self.services = _replicated(services(given))
        self._ports = {
            name: port for name, service in self.services.items() if (port := service.option("--port") or _redis_port(service))
        }
        self._local = {name: free_port() for name in self._ports}
        self.running: dict[str, Program] = {}

    def port(self, service: str) -> int:
        return self._local[service]

    @property
    def redis_url(self) -> str:
        return self.environment("beat")["TRAWL_REDIS_URL"]

    def up(self) -> None:
        """As `docker compose up` does it: what others depend on first, the rest at once."""
        waited_for = {name for service in self.services.values() for name in service.raw.get("depends_on", {})}
        for group in (waited_for, self.services.keys() - waited_for):
            for name in sorted(group):
                self._start(self.services[name])
            for name in sorted(group):
                self._wait_healthy(self.services[name])

    def environment(self, name: str) -> dict[str, str]:
        """What the service finds in its environment: the image's, then its own."""
        service = self.services[name]
        own = {} if name == "redis" else image_environment()
        own = {key: self._here(value, service) for key, value in {**own, **service.environment}.items()}
        scripts = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {**own, "PATH": scripts, "HOSTNAME": socket.gethostname(), "PYTHONUNBUFFERED": "1", MARK: str(self.folder)}

    def stop(self) -> dict[str, int]:
        """As `docker compose stop`: SIGTERM to each, those first that depend on others; returns the exit codes."""
        codes = {}
        ours = [name for name in self.running if name != "redis"]
        for group in (ours, ["redis"]):
            for name in group:
                self.running[name].process.send_signal(signal.SIGTERM)
            for name in group:
                grace_s = float(self.services[name].raw.get("stop_grace_period", "10s").removesuffix("s"))
                codes[name] = self.running[name].wait(max(grace_s, 60))
        return codes

    def said(self) -> str:
        """The last words of all, for a failure's message."""
        return "\n".join(f"--- {name}\n{program.said()[-1500:]}" for name, program in self.running.items())

    def folder_of(self, volume: str) -> Path:
        path = self.folder / volume
        path.mkdir(exist_ok=True)
        return path

    def _start(self, service: ComposeService) -> None:
        command = [self._here(word, service) for word in service.command]
        if service.name == "redis":
            binary = str(choose().path)
            place = str(self.folder_of(service.volumes["/data"]))
            command = [binary, *command[1:], "--port", str(self.port("redis")), "--bind", "127.0.0.1", "--dir", place]
        elif command[0] == "python":
            command = [sys.executable, "-W", "error", *command[1:]]
        else:
            command = [str(Path(sys.executable).parent / command[0]), *command[1:]]
        self.running[service.name] = Program(command, self.environment(service.name), self.folder / f"{service.name}.log")

    def _wait_healthy(self, service: ComposeService) -> None:
        def healthy() -> bool:
            program = self.running[service.name]
            if program.process.poll() is not None:
                raise AssertionError(f"ended with code {program.process.returncode}")
            return self._healthy(service)

        wait_until(healthy, lambda: f"{service.name} is healthy; all said:\n{self.said()}", 60, every_s=0.3)

    def _healthy(self, service: ComposeService) -> bool:
        if service.name == "redis":  # redis-cli is in its image, not here
            with redis.Redis.from_url(self.redis_url) as client:
                return bool(client.ping())
        if not service.healthcheck:
            return True
        command = [self._here(word, service) for word in service.healthcheck]
        checked = subprocess.run(
            command, env=self.environment(service.name), cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
        )
        if checked.returncode:
            raise AssertionError(f"{' '.join(service.healthcheck)}: {checked.stderr[-300:]}")
        return True

    def _here(self, text: str, service: ComposeService) -> str:
        """The table: containers' names and ports, addresses and paths, as they are on this machine."""
        for name, port in self._ports.items():
            text = text.replace(f"{name}:{port}", f"127.0.0.1:{self._local[name]}")
        if own := self._ports.get(service.name):
            text = text.replace(f"--port={own}", f"--port={self._local[service.name]}")
            text = text.replace(f"127.0.0.1:{own}", f"127.0.0.1:{self._local[service.name]}")
        data = self.folder_of(service.volumes.get("/data", service.name))
        sites = ROOT / service.volumes.get("/app/sites", "sites")
        text = text.replace("/app/health.py", str(ROOT / "workers/node/health_check.py"))
        text = text.replace("/dev/shm/trawl", str(self.folder / f"health-{service.name}"))
        text = text.replace("0.0.0.0", "127.0.0.1").replace("/app/sites", str(sites)).replace("/app/", f"{ROOT}/")
        text = text.replace("/run/secrets", str(self._secrets())) if service.raw.get("secrets") else text
        return text.replace("/data", str(data))

    def _secrets(self) -> Path:
        """The folder of the files that `secrets` names."""
        folder = self.folder_of("secrets")
        for name in ("signing_key",):
            if not (file := folder / name).exists():
                file.write_text(secrets.token_hex(32))
        return folder

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        for program in reversed(self.running.values()):
            if program.process.poll() is None:
                program.process.kill()
            program.process.wait()


def _replicated(services: Mapping[str, ComposeService]) -> dict[str, ComposeService]:
    """`beat` and `beat-2` for a service `beat` of two replicas."""
    found = dict(services)
    for name, service in services.items():
        for number in range(2, int(service.raw.get("deploy", {}).get("replicas", 1)) + 1):
            found[f"{name}-{number}"] = replace(service, name=f"{name}-{number}")
    return found


def _redis_port(service: ComposeService) -> str | None:
    return "6379" if service.name == "redis" else None
