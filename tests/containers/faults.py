"""What is done to the containers of a fleet under load; each leaves the fleet to mend itself, and says what it saw."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable

from .engine import Project, docker, wait

Fault = Callable[[Project], str]
SERVICES = ("redis", "worker-list", "worker-detail", "worker-control", "beat", "flower", "exporter")
AWAY_S = 5.0


def killed(service: str) -> Fault:
    """SIGKILL of process 1 of the container that hosts a service's crawlers. The engine takes `docker kill` for a wish of the
    operator, and does not start the container again: this is how a process dies without an operator.
    """

    def act(project: Project) -> str:
        pid = project.host(service)["State"]["Pid"]
        subprocess.run(("kill", "-KILL", str(pid)), check=True)
        # Until the engine has noticed, it calls the container healthy, and the fleet would count as whole.
        wait(lambda: all(one["State"]["Pid"] != pid for one in project.containers(service)), "another process 1")
        return ""

    return act


def docker_kill(service: str) -> Fault:
    """`docker kill`, and `docker start` five seconds later: a host that was switched off."""

    def act(project: Project) -> str:
        name = project.host(service)["Id"]
        docker("kill", name)
        time.sleep(AWAY_S)
        docker("start", name)
        return ""

    return act


def docker_stop(service: str) -> Fault:
    """`docker stop` with the service's own grace period, and `docker start` five seconds later."""

    def act(project: Project) -> str:
        name, begun = project.host(service)["Id"], time.monotonic()
        docker("stop", name)
        took = time.monotonic() - begun
        (ended,) = (one for one in project.containers(service) if one["Id"] == name)
        time.sleep(AWAY_S)
        docker("start", name)
        return f"ended after {took:.1f} s with exit code {ended['State']['ExitCode']}"

    return act


def restarted(service: str) -> Fault:
    """`docker compose restart` of all of a service's containers: SIGTERM, the grace period, and a start."""

    def act(project: Project) -> str:
        begun = time.monotonic()
        project.compose("restart", service)
        return f"restart returned after {time.monotonic() - begun:.1f} s"

    return act


def out_of_memory(service: str, score: int) -> Fault:
    """A process in the container's own control group takes memory until the kernel ends one: with the score that crawlers give
    themselves (1000) that is the process; with 0 it is a crawler, and the process stops at that.
    """
    hog = f"""
import glob
open('/proc/self/oom_score_adj', 'w').write('{score}')
def crawlers():
    found = set()
    for path in glob.glob('/proc/[0-9]*/cmdline'):
        try:
            if b'workers.crawler' in open(path, 'rb').read(): found.add(path)
        except OSError: pass
    return found
before, taken = crawlers(), []
while {score} or before <= crawlers(): taken.append(bytearray(1 << 24))
print(len(before - crawlers()))
"""

    def act(project: Project) -> str:
        one = project.containers(service)[0]
        done = subprocess.run(
            ("docker", "exec", "-i", one["Id"], "python", "-c", hog), check=False, capture_output=True, text=True
        )
        (now,) = (each for each in project.containers(service) if each["Id"] == one["Id"])
        outlived = now["State"]["Pid"] == one["State"]["Pid"]
        victims = f"{done.stdout.strip()} crawlers ended" if done.stdout.strip() else "the process that took it ended"
        return f"{victims}, process 1 {'lives' if outlived else 'ended'}"

    return act


FAULTS: dict[str, Fault] = {
    **{f"SIGKILL of process 1, {name}": killed(name) for name in ("worker-detail", "worker-control", "beat", "redis")},
    **{f"docker kill, start after 5 s, {name}": docker_kill(name) for name in SERVICES},
    **{f"docker stop, start after 5 s, {name}": docker_stop(name) for name in SERVICES},
    **{f"docker compose restart {name}": restarted(name) for name in SERVICES},
    "memory of worker-detail used up by a process like a crawler": out_of_memory("worker-detail", 1000),
    "memory of worker-detail used up by a process unlike one": out_of_memory("worker-detail", 0),
}
