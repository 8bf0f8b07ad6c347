"""Faults of the network: a worker cut off Redis, off the site, without names, or with another clock than the others."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from .engine import Failed, Project, docker, wait
from .network import RESOLVER, address, counted, dropped

Fault = Callable[[Project], str]
LEASE_S = 15.0  # by then a crawler that hears nothing of Redis has ended its pages in flight and stands still
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"


def cut_off_redis(service: str, seconds: float) -> Fault:
    """The container of a service that hosts its crawlers does not reach Redis, but still the site."""

    def act(project: Project) -> str:
        cut, site = project.host(service), address(project.containers("forum")[0])
        with counted(cut, site) as answers:
            wait(lambda: service == "worker-control" or answers() > 0, f"{service} fetches pages", 60)
            with dropped(cut, address(project.containers("redis")[0])):
                project.slots.leave_out(project.processes(cut["Id"]))
                time.sleep(LEASE_S)
                before = answers()
                time.sleep(seconds - LEASE_S)
                late = answers() - before
        if service == "worker-control":
            return "crawlers go on, items wait in Redis"
        return f"{late} packets of pages reached it between {LEASE_S:.0f} and {seconds:.0f} s"

    return act


def cut_off_site(service: str, seconds: float) -> Fault:
    """No container of a service reaches the site; Redis is there."""

    def act(project: Project) -> str:
        site = address(project.containers("forum")[0])
        with ExitStack() as counters, ExitStack() as cuts:
            mine = project.containers(service)
            told = [counters.enter_context(counted(one, site)) for one in mine]
            for one in mine:
                cuts.enter_context(dropped(one, site))
            return _next_page(told, seconds, cuts)

    return act


def without_names(services: tuple[str, ...], seconds: float, *, redis_dies: bool) -> Fault:
    """Names are not resolved in these services; Redis is killed in the meantime, so that everybody has to connect again."""

    def act(project: Project) -> str:
        site = address(project.containers("forum")[0])
        with ExitStack() as counters, ExitStack() as cuts:
            mine = [one for service in services for one in project.containers(service)]
            told = [counters.enter_context(counted(one, site)) for one in mine]
            for one in mine:
                cuts.enter_context(dropped(one, RESOLVER))
            if redis_dies:
                docker("restart", "-t", "10", project.containers("redis")[0]["Id"])
            return _next_page(told, seconds, cuts)

    return act


def _next_page(told: list[Any], seconds: float, cuts: ExitStack) -> str:
    """Wait, heal, and say how long it took until the forum's next page arrived."""
    time.sleep(seconds)
    before = sum(one() for one in told)
    cuts.close()
    try:
        return f"the next page {wait(lambda: sum(one() for one in told) > before, 'a page', 150):.0f} s after its end"
    except Failed:
        return "no page within 150 s of its end"


def other_clock(service: str, ahead_s: int) -> Fault:
    """A further node of the service whose clock is wrong, while the others of the service are stopped for 30 s."""

    def act(project: Project) -> str:
        usual = [one["Id"] for one in project.containers(service)]
        mount = f"{FAKETIME}:/faketime.so:ro"
        clock = ("-e", "LD_PRELOAD=/faketime.so", "-e", f"FAKETIME={ahead_s:+d}s", "-e", "FAKETIME_DONT_FAKE_MONOTONIC=1")
        since = time.monotonic()
        odd = project.compose("run", "-d", "--no-deps", *clock, "-v", mount, service).strip().splitlines()[-1]
        try:
            wait(lambda: not project.unhealthy(), "the node with another clock is healthy")
            docker("stop", *usual)
            time.sleep(30)
            said = [what for what in project.watched.problems(since) if "clock" in what]
            docker("start", *usual)
        finally:
            docker("rm", "-f", odd)
        return f"`trawl status`: {said[0]}" if said else "`trawl status` says nothing of the clock"

    return act


FAULTS: dict[str, Fault] = {
    "the worker-detail with the crawlers cut off Redis for 30 s": cut_off_redis("worker-detail", 30),
    "the worker-detail with the crawlers cut off Redis for 120 s": cut_off_redis("worker-detail", 120),
    "worker-control cut off Redis for 30 s": cut_off_redis("worker-control", 30),
    "all worker-detail cut off the site for 30 s": cut_off_site("worker-detail", 30),
    "all worker-detail cut off the site for 120 s": cut_off_site("worker-detail", 120),
    "no names for 60 s, workers": without_names(("worker-list", "worker-detail", "worker-control"), 60, redis_dies=False),
    "no names for 60 s, Redis restarted meanwhile": without_names(
        ("worker-list", "worker-detail", "worker-control", "beat"), 60, redis_dies=True
    ),
    "clock of a node 120 s ahead": other_clock("worker-detail", 120),
    "clock of a node 120 s behind": other_clock("worker-detail", -120),
}
