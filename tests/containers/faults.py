"""What is done to the containers of a fleet under load; each leaves the fleet to mend itself."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable

from .engine import Project, docker, wait

Fault = Callable[[Project], None]


def killed(service: str) -> Fault:
    """SIGKILL of process 1 of a service's first container. The engine takes `docker kill` for a wish of the operator, and does
    not start the container again: this is how a process dies by itself.
    """

    def act(project: Project) -> None:
        pid = project.containers(service)[0]["State"]["Pid"]
        subprocess.run(("kill", "-KILL", str(pid)), check=True)
        # Until the engine has noticed, it calls the container healthy, and the fleet would count as whole.
        wait(lambda: all(one["State"]["Pid"] != pid for one in project.containers(service)), "another process 1")

    return act


def docker_kill(service: str) -> Fault:
    """`docker kill`, and `docker start` five seconds later: a host that was switched off."""

    def act(project: Project) -> None:
        name = project.containers(service)[0]["Id"]
        docker("kill", name)
        time.sleep(5)
        docker("start", name)

    return act


def restarted(service: str) -> Fault:
    """`docker compose restart`: SIGTERM, the grace period, and a start."""
    return lambda project: (project.compose("restart", service), None)[1]


def cut_off(service: str, seconds: float) -> Fault:
    """Every packet between a container and Redis is dropped, both ways, and nobody is told."""

    def act(project: Project) -> None:
        redis = next(iter(project.containers("redis")[0]["NetworkSettings"]["Networks"].values()))["IPAddress"]
        enter = ("nsenter", "-t", str(project.containers(service)[0]["State"]["Pid"]), "-n", "iptables")
        rules = [("OUTPUT", "-d", redis, "-j", "DROP"), ("INPUT", "-s", redis, "-j", "DROP")]
        for rule in rules:
            subprocess.run((*enter, "-A", *rule), check=True)
        time.sleep(seconds)
        for rule in rules:
            subprocess.run((*enter, "-D", *rule), check=True)

    return act


def out_of_memory(service: str) -> Fault:
    """A crawler of the container takes memory until the kernel ends it: `docker exec` in the container's own control group,
    with the score that crawlers give themselves.
    """
    hog = "open('/proc/self/oom_score_adj', 'w').write('1000')\ntaken = []\nwhile True: taken.append(bytearray(1 << 24))\n"

    def act(project: Project) -> None:
        name = project.containers(service)[0]["Id"]
        subprocess.run(("docker", "exec", "-i", name, "python", "-c", hog), check=False, capture_output=True)

    return act


FAULTS: dict[str, Fault] = {
    "SIGKILL of process 1, worker-detail": killed("worker-detail"),
    "SIGKILL of process 1, worker-control": killed("worker-control"),
    "SIGKILL of process 1, beat": killed("beat"),
    "SIGKILL of process 1, redis": killed("redis"),
    "docker kill, start after 5 s, worker-list": docker_kill("worker-list"),
    "docker kill, start after 5 s, redis": docker_kill("redis"),
    "docker compose restart worker-detail": restarted("worker-detail"),
    "docker compose restart worker-control": restarted("worker-control"),
    "memory of worker-detail used up": out_of_memory("worker-detail"),
    "worker-detail cut off Redis for 30 s": cut_off("worker-detail", 30),
}
