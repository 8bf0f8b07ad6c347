"""Faults of a whole machine and of an operator: a node's containers lost, its disk full, another image rolled out and back."""

from __future__ import annotations

import time
from collections.abc import Callable

from .engine import EARLIER, EARLIER_IMAGE, Project, docker, wait
from .faults import SERVICES
from .network import address, counted

Fault = Callable[[Project], str]
NODE = ("worker-list", "worker-detail", "beat")  # one container of each stands for a machine
AWAY_S = 60.0
FULL_S = 60.0
NEXT = "next"
SIDE_BY_SIDE = "crawlers of an earlier commit beside this tree's"


def node_lost(project: Project) -> str:
    """SIGKILL of all containers of the machine that hosts the crawlers, at once; they come back a minute later."""
    lost = [project.host(service)["Id"] for service in NODE]
    hosts, begun = {one[:12] for one in lost}, time.monotonic()
    docker("kill", *lost)
    try:
        # The registry shows the lost crawlers until their heartbeats are too old.
        elsewhere = lambda: project.watched.whole() and not hosts.intersection(project.watched.seen[-1].hosts)  # noqa: E731
        wait(elsewhere, "the other machine has all crawlers", 120)
        taken_s = time.monotonic() - begun
        time.sleep(max(0.0, AWAY_S - taken_s))
    finally:
        docker("start", *lost)
    return f"every slot had a crawler on the other node {taken_s:.0f} s after"


def disk_full(project: Project) -> str:
    """No byte is left on the volume of the database, for a minute."""
    control, since = project.containers("worker-control")[0]["Id"], time.monotonic()
    docker("exec", control, "sh", "-c", "cat /dev/zero > /data/filling 2> /dev/null; sync; true")
    try:
        time.sleep(FULL_S)
        said = [what for what in project.watched.problems(since) if "disk" in what]
    finally:
        docker("exec", control, "rm", "/data/filling")
    return f"`trawl status`: {said[0]}" if said else "`trawl status` says nothing of it"


def rolled(tag: str) -> Fault:
    """`docker compose up -d` with another image, under load."""

    def act(project: Project) -> str:
        docker("build", "-q", "-t", f"trawl:{NEXT}", "-", given="FROM trawl:latest\nLABEL of-a-test=next\n")
        project.variables["TRAWL_TAG"] = tag
        begun = time.monotonic()
        project.up()
        return f"`up` returned after {time.monotonic() - begun:.0f} s"

    return act


def side_by_side(project: Project) -> str:
    """A node of an earlier commit's image joins; the service has twice its crawlers for a minute, so that old and new ones work
    on one queue; then the old node leaves.
    """
    control, site = project.containers("worker-control")[0]["Id"], address(project.containers("forum")[0])
    project.variables["TRAWL_TAG"] = EARLIER_IMAGE.partition(":")[2]
    try:
        old = project.compose("run", "-d", "--no-deps", "worker-detail").strip().splitlines()[-1]
    finally:
        del project.variables["TRAWL_TAG"]
    (node,) = (one for one in project.containers("worker-detail") if one["Id"].startswith(old))
    try:
        wait(lambda: not project.unhealthy(), "the old node is healthy")
        docker("exec", control, "trawl", "scale", "forum_detail=4")
        mixed = lambda: 0 < project.watched.seen[-1].hosts.count(node["Id"][:12]) < 4 and project.watched.whole()  # noqa: E731
        wait(mixed, "old and new crawlers run")
        with counted(node, site) as answers:
            time.sleep(AWAY_S)
            pages = answers()
        ours = project.watched.seen[-1].hosts.count(node["Id"][:12])
        docker("exec", control, "trawl", "scale", "forum_detail=2")
        docker("stop", node["Id"])
    finally:
        docker("rm", "-f", node["Id"])
    return f"{ours} of 4 crawlers of {EARLIER} for a minute, {pages} packets of pages"


def restored(project: Project) -> str:
    """A backup of the working fleet; half a minute later Redis's volume and the database are gone, and it is put back."""
    assert project.database is not None
    control, begun = project.containers("worker-control")[0]["Id"], time.monotonic()
    docker("exec", control, "trawl", "backup", "create", "/data/drill.backup")
    took_s = time.monotonic() - begun
    time.sleep(30)
    project.compose("stop", *SERVICES)
    project.compose("rm", "-f", "redis")
    docker("volume", "rm", f"{project.name}_redis-data")
    for path in project.database.glob("trawl.sqlite*"):
        path.unlink()
    project.compose("up", "-d", "--no-build", "--wait", "redis")
    begun = time.monotonic()
    project.compose("run", "--rm", "--no-deps", "worker-control", "trawl", "backup", "restore", "/data/drill.backup")
    restore_s = time.monotonic() - begun
    (project.database / "drill.backup").unlink()
    project.up()
    return f"`trawl backup create` took {took_s:.1f} s, `trawl backup restore` {restore_s:.1f} s, with container and Python"


FAULTS: dict[str, Fault] = {
    "the machine with the crawlers lost: its containers killed, back after 60 s": node_lost,
    "disk of the database full for 60 s": disk_full,
    "Redis's volume and the database lost, restored from a backup": restored,
    SIDE_BY_SIDE: side_by_side,
    "another image by `docker compose up`": rolled(NEXT),
    "the image before by `docker compose up`": rolled("latest"),
}
