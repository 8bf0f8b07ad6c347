"""Three Docker engines on one machine, each in a network namespace with an address of its own, joined to a Swarm; needs root.

The engines run `dockerd` of this machine with folders, sockets and containers of their own. A registry (Debian's
`docker-registry`) is where they pull from. All of it is gone at the end.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from .engine import Failed, wait

BRIDGE, NETWORK = "trawl-swarm", "10.213.7"
REGISTRY = f"{NETWORK}.254:5000"
TOOLS = ("dockerd", "docker", "docker-registry", "ip", "nsenter")
RUN = Path("/run/trawl-swarm")


def lacking() -> str | None:
    """Why no Swarm can be made here; None where one can."""
    if os.geteuid():
        return "it needs root, for network namespaces"
    return next((f"there is no {name}" for name in TOOLS if shutil.which(name) is None), None)


@dataclass(frozen=True)
class Engine:
    """One engine, a machine of its own as far as Swarm can tell."""

    number: int
    folder: Path
    process: subprocess.Popen[bytes]

    @property
    def address(self) -> str:
        return f"{NETWORK}.{self.number}"

    @property
    def name(self) -> str:
        return f"n{self.number}"

    @property
    def socket(self) -> str:
        return f"unix://{RUN}/{self.name}.sock"

    def docker(self, *words: str, given: str | None = None, limit_s: float = 300) -> str:
        """Its standard output. Raises Failed."""
        command = ("docker", "-H", self.socket, *words)
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=limit_s, check=False)
        if done.returncode:
            raise Failed(f"{self.name}: docker {' '.join(words[:5])}: {done.stderr.strip()[-400:]}")
        return done.stdout

    def lost(self) -> None:
        """The machine is switched off: engine, containerd, its shims, and process 1 of every container, by SIGKILL."""
        ids = self.docker("ps", "-q").split()
        pids = self.docker("inspect", "-f", "{{.State.Pid}}", *ids).split() if ids else []
        containerd = (RUN / self.name / "containerd/containerd.pid").read_text()
        own = f"{RUN}/{self.name}/".encode()
        shims = [path.parent.name for path in Path("/proc").glob("[0-9]*/cmdline") if own in _read(path)]
        for pid in (str(self.process.pid), containerd, *shims, *pids):
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)

    def end(self) -> None:
        """Remove its containers, end it, and unmount what it leaves."""
        with suppress(Failed, subprocess.TimeoutExpired):
            ids = self.docker("ps", "-aq", limit_s=30).split()
            self.docker("rm", "-f", *ids) if ids else None
        self.process.terminate()
        self.process.wait(60)
        for line in Path("/proc/mounts").read_text().splitlines()[::-1]:
            if (mounted := line.split()[1]).startswith((str(self.folder), str(RUN / self.name))):
                subprocess.run(("umount", "-l", mounted), check=False)


def _read(path: Path) -> bytes:
    """Its content; nothing where the process has ended meanwhile."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


@contextmanager
def cluster(folder: Path, nodes: int = 3) -> Iterator[list[Engine]]:
    """The engines, joined; the first one is the manager."""
    with ExitStack() as undone:
        RUN.mkdir(exist_ok=True)
        undone.callback(shutil.rmtree, RUN, ignore_errors=True)
        _bridge(undone)
        _registry(folder, undone)
        engines = [_engine(number, folder / f"n{number}", undone) for number in range(1, nodes + 1)]
        first = engines[0]
        first.docker("swarm", "init", "--advertise-addr", first.address, "--listen-addr", f"{first.address}:2377")
        token = first.docker("swarm", "join-token", "-q", "worker").strip()
        for one in engines[1:]:
            own = ("--advertise-addr", one.address, "--listen-addr", f"{one.address}:2377")
            one.docker("swarm", "join", "--token", token, *own, f"{first.address}:2377")
        yield engines


def _engine(number: int, folder: Path, undone: ExitStack) -> Engine:
    name = f"n{number}"
    inside = ("ip", "-n", f"trawl-{name}")
    for command in (
        ("ip", "netns", "add", f"trawl-{name}"),
        ("ip", "link", "add", f"trawl-{name}", "type", "veth", "peer", "name", "eth0", "netns", f"trawl-{name}"),
        ("ip", "link", "set", f"trawl-{name}", "master", BRIDGE, "up"),
        (*inside, "addr", "add", f"{NETWORK}.{number}/24", "dev", "eth0"),
        (*inside, "link", "set", "eth0", "up"),
        (*inside, "link", "set", "lo", "up"),
        (*inside, "route", "add", "default", "via", f"{NETWORK}.254"),
    ):
        subprocess.run(command, check=True)
    undone.callback(subprocess.run, ("ip", "netns", "del", f"trawl-{name}"), check=False)
    folder.mkdir()
    words = ["dockerd", "--data-root", f"{folder}/data", "--exec-root", f"{RUN}/{name}", "--pidfile", f"{folder}/pid"]
    words += ["-H", f"unix://{RUN}/{name}.sock", "--storage-driver", "overlay2", "--log-driver", "local"]
    words += ["--insecure-registry", REGISTRY, "--bip", f"172.29.{number}.1/24"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ("nsenter", f"--net=/run/netns/trawl-{name}", *words), stdout=log, stderr=log, start_new_session=True
        )
    engine = Engine(number, folder, process)
    undone.callback(engine.end)
    wait(lambda: _answers(engine), f"engine {name} answers; {folder}/log", 60)
    return engine


def _answers(engine: Engine) -> bool:
    try:
        engine.docker("info", limit_s=20)
    except (Failed, subprocess.TimeoutExpired):
        return False
    return True


def _bridge(undone: ExitStack) -> None:
    for command in (
        ("ip", "link", "add", BRIDGE, "type", "bridge"),
        ("ip", "addr", "add", f"{NETWORK}.254/24", "dev", BRIDGE),
        ("ip", "link", "set", BRIDGE, "up"),
        # An engine of this machine drops what is forwarded; between ports of one bridge that is decided here, too.
        ("iptables", "-w", "-I", "FORWARD", "-i", BRIDGE, "-o", BRIDGE, "-j", "ACCEPT"),
    ):
        subprocess.run(command, check=True)
    undone.callback(subprocess.run, ("ip", "link", "del", BRIDGE), check=False)
    undone.callback(subprocess.run, ("iptables", "-w", "-D", "FORWARD", "-i", BRIDGE, "-o", BRIDGE, "-j", "ACCEPT"), check=False)


def _registry(folder: Path, undone: ExitStack) -> None:
    (folder / "registry").mkdir()
    config = folder / "registry.yml"
    config.write_text(
        f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {folder}/registry}}}}\n"
        f"http: {{addr: {REGISTRY}}}\nlog: {{level: error}}\n"
    )
    with (folder / "registry.log").open("wb") as log:
        process = subprocess.Popen(("docker-registry", "serve", str(config)), stdout=log, stderr=log)
    undone.callback(process.wait, 20)
    undone.callback(process.terminate)
    time.sleep(1)
    if process.poll() is not None:
        raise Failed(f"the registry ended: {(folder / 'registry.log').read_text()[-300:]}")
