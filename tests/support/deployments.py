"""The ways in which a fleet of one's own is started, as local processes: each file's commands, variables and mounts.

Docker, Swarm, Kubernetes and systemd are replaced by a table, as in `compose_processes`: a host name is a port of loopback, a
volume is a folder, the image's `/app` is the project's folder. What ended is started again after two seconds, as they do it.
"""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from redis_components.embedded.files import free_port
from redis_components.embedded.server import choose
from tests.support import compose_file, warm_start
from tests.support.compose_file import ROOT
from tests.support.fleet import Program

RESTART_S = 2.0
PASSWORD = "of-a-test"
KEY = "0123456789abcdef" * 4
KUBERNETES = ROOT / "deploy/kubernetes"
WAYS = ("celery", "compose", "swarm", "kubernetes", "systemd", "up")


@dataclass(frozen=True, kw_only=True)
class Role:
    """A process of a way: one container, unit or terminal."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    mounts: Mapping[str, str] = field(default_factory=dict)
    """Volumes by their path in the container."""


class Deployment:
    """The processes of one way, in a project's folder. Leave the block to end them."""

    def __init__(self, way: str, folder: Path, project: Path, *, replicas: int) -> None:
        self.way, self.folder, self.project = way, folder, project
        self.port = free_port()
        self.roles = {one.name: one for one in _roles(way, self, replicas)}
        self.running: dict[str, Program] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tend, daemon=True)

    def redis_url(self) -> str:
        """The Redis of the fleet, as it is reached from here."""
        if self.way != "up":
            return f"redis://:{PASSWORD}@127.0.0.1:{self.port}/0"
        # It starts its own, on a free port.
        command = [sys.executable, "-c", "from redis_components.embedded import redis_url; print(redis_url())"]
        asked = subprocess.run(
            command, cwd=self.project, env=self.environment("up"), capture_output=True, text=True, timeout=60, check=True
        )
        return asked.stdout.strip()

    def folder_of(self, volume: str) -> Path:
        path = self.folder / volume
        path.mkdir(parents=True, exist_ok=True)
        return path

    def here(self, text: str, role: Role) -> str:
        """The table: what is at a container's address or path is here."""
        text = text.replace("redis:6379", f"127.0.0.1:{self.port}").replace("%h", f"{role.name}.{socket.gethostname()}")
        text = text.replace("/dev/shm/trawl", str(self.folder_of(f"health/{role.name}")))
        text = text.replace("/run/secrets/signing_key", str(self._signing_key())).replace("/app", str(self.project))
        volume = role.mounts.get("/data")
        return re.sub(r"/data(?=/|$)", str(self.folder_of(volume)), text) if volume else text

    def environment(self, name: str) -> dict[str, str]:
        """What the process finds in its environment."""
        role = self.roles[name]
        own = {key: self.here(value, role) for key, value in role.environment.items()}
        scripts = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        base = {name: os.environ[name] for name in ("HOME", "LANG", "COVERAGE_PROCESS_START") if name in os.environ}
        # The image has its packages on this path, and the project's folder is the current one.
        return {**base, **own, "PATH": scripts, "PYTHONPATH": f"{self.project}{os.pathsep}{ROOT}", "PYTHONUNBUFFERED": "1"}

    def start(self) -> None:
        for name in self.roles:
            self._start(name)
        self._thread.start()

    def trawl(self, *words: str) -> str:
        """Run a command where its users would: in the container that writes, or in the project's folder."""
        name = next(one for one in ("worker-control", "worker", "up") if one in self.roles)
        command = [sys.executable, "-m", "cli.main", *words]
        done = warm_start.run(
            command, cwd=self.project, env=self.environment(name), capture_output=True, text=True, timeout=120, check=False
        )
        return done.stdout + done.stderr

    def said(self) -> str:
        return "\n".join(f"--- {name}\n{one.said()[-1500:]}" for name, one in self.running.items())

    def _start(self, name: str) -> None:
        role = self.roles[name]
        words = [self.here(word, role) for word in role.command]
        if words[0] == "redis-server":
            place = str(self.folder_of(role.mounts.get("/data", "redis-data")))
            words = [str(choose().path), *words[1:], "--port", str(self.port), "--bind", "127.0.0.1", "--dir", place]
        elif words[0] == "trawl":  # the installed script may be of another tree
            words = [sys.executable, "-m", "cli.main", *words[1:]]
        elif words[0] == "celery":
            words = [sys.executable, "-m", "celery", *words[1:]]
        self.running[name] = Program(words, self.environment(name), self.folder / f"{name}.log", self.project)

    def _tend(self) -> None:
        while not self._over.wait(RESTART_S):
            for name, one in list(self.running.items()):
                if one.process.poll() is not None and not self._over.is_set():
                    self._start(name)

    def _signing_key(self) -> Path:
        file = self.folder_of("secrets") / "signing_key"
        if not file.exists():
            file.write_text(KEY)
        return file

    def __enter__(self) -> Deployment:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        ours = [one for name, one in self.running.items() if name != "redis"]
        for one in ours:
            one.process.terminate()
        for one in ours:
            try:
                one.process.wait(60)
            except subprocess.TimeoutExpired:
                one.process.kill()
        for name in {"redis"} & self.running.keys():
            self.running[name].process.kill()
            self.running[name].process.wait()


def _roles(way: str, deployment: Deployment, replicas: int) -> Iterator[Role]:
    if way in ("compose", "swarm"):
        yield from _of_compose(ROOT / ("docker-compose.yml" if way == "compose" else "deploy/stack.yml"), replicas)
        return
    if way == "kubernetes":
        yield from _of_kubernetes(replicas)
        return
    data = str(deployment.folder_of("data"))
    if way == "up":
        command = ("trawl", "up", "--port-flower", "0", "--port-exporter", "0", "--logs")
        yield Role(name="up", command=command, environment={"TRAWL_DATA_DIR": data, "TRAWL_NODE_CRAWLERS": "2"})
        return
    server = ("redis-server", "--requirepass", PASSWORD, "--appendonly", "yes", "--save", "")
    yield Role(name="redis", command=server, environment={})
    own = {
        "TRAWL_REDIS_URL": f"redis://:{PASSWORD}@redis:6379/0",
        "TRAWL_DATA_DIR": data,
        "TRAWL_NODE_CRAWLERS": "2",
    }
    if way == "systemd":
        yield from _of_units(deployment, own)
        return
    for name in ("worker", "beat"):
        yield Role(name=name, command=("celery", "-A", "tasks", name), environment=own)


def _of_compose(file: Path, replicas: int) -> Iterator[Role]:
    given = {
        "TRAWL_REDIS_PASSWORD": PASSWORD,
        "FLOWER_BASIC_AUTH": "a:b",
        "TRAWL_SITES_DIR": "./sites",
        "TRAWL_CONFIG": "./trawl.toml",
        "TRAWL_LIST_REPLICAS": "0",
        "TRAWL_DETAIL_REPLICAS": str(replicas),
        "TRAWL_DETAIL_CRAWLERS": "2",
    }
    image = {key: value for key, value in compose_file.image_environment().items() if key not in ("PATH", "PYTHONPATH")}
    for name, service in compose_file.services(given, file).items():
        if name != "redis" and not {"worker", "beat"} & {*service.command}:
            continue
        for number in range(1, int(service.raw.get("deploy", {}).get("replicas", 1)) + 1):
            yield Role(
                name=name if number == 1 else f"{name}-{number}",
                command=service.command,
                environment=service.environment if name == "redis" else {**image, **service.environment},
                mounts=service.volumes,
            )


def _of_kubernetes(replicas: int) -> Iterator[Role]:
    kustomization = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())
    (generated,) = kustomization["configMapGenerator"]
    shared = dict(one.split("=", 1) for one in generated["literals"])
    secret = {"redis-url": f"redis://:{PASSWORD}@redis:6379/0", "redis-password": PASSWORD, "signing-key": KEY}
    image = {key: value for key, value in compose_file.image_environment().items() if key not in ("PATH", "PYTHONPATH")}
    numbers = {"worker-list": 0, "worker-detail": replicas}  # as an overlay has them
    for name in kustomization["resources"]:
        for one in yaml.safe_load_all((KUBERNETES / name).read_text()):
            if one["kind"] not in ("Deployment", "StatefulSet"):
                continue
            role = _of_pod(one, shared, secret, image)
            if role.name == "redis" or {"worker", "beat"} & {*role.command}:
                for number in range(1, numbers.get(role.name, one["spec"]["replicas"]) + 1):
                    yield Role(
                        name=role.name if number == 1 else f"{role.name}-{number}",
                        command=role.command,
                        environment=role.environment,
                        mounts=role.mounts if role.name != "worker-detail" else {"/data": f"data-{number}"},
                    )


def _of_pod(manifest: Mapping[str, Any], shared: Mapping[str, str], secret: Mapping[str, str], image: Mapping[str, str]) -> Role:
    pod = manifest["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    name = manifest["metadata"]["name"]
    found = {} if name == "redis" else {**image, **shared}
    for one in container.get("env", []):
        key = one.get("valueFrom", {}).get("secretKeyRef", {}).get("key", "")
        if "value" in one or key in secret:
            found[one["name"]] = one["value"] if "value" in one else secret[key]
    words = [re.sub(r"\$\((\w+)\)", lambda match: found[match[1]], word) for word in container["command"]]
    mounts = {one["mountPath"]: f"{name}-{one['name']}" for one in container["volumeMounts"]}
    return Role(name=name, command=tuple(words), environment=found, mounts=mounts)


def _of_units(deployment: Deployment, own: Mapping[str, str]) -> Iterator[Role]:
    """What `trawl config systemd` writes on this machine, whose `.env` has the variables."""
    here = {key: value.replace("redis:6379", f"127.0.0.1:{deployment.port}") for key, value in own.items()}
    (deployment.project / ".env").write_text("".join(f"{key}={value}\n" for key, value in here.items()))
    units = deployment.folder_of("units")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **here}
    command = [sys.executable, "-m", "cli.main", "config", "systemd", "--write", str(units)]
    subprocess.run(command, cwd=deployment.project, env=environment, check=True, capture_output=True, timeout=60)
    for name in ("worker", "beat"):
        text = (units / f"trawl-{name}.service").read_text()
        (start,) = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
        assert re.findall(r"^WorkingDirectory=(.*)$", text, re.MULTILINE) == [str(deployment.project)]
        variables = dict(one.split("=", 1) for one in re.findall(r"^Environment=(.*)$", text, re.MULTILINE))
        yield Role(name=name, command=tuple(shlex.split(start.replace("%%", "%"))), environment=variables)
