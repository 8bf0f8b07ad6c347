"""What is seen of a fleet from outside while something is done to it: its status once a second, pages that the forum served."""

from __future__ import annotations

import json
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # the machine's proxy knows no container


@dataclass(frozen=True, kw_only=True)
class Seen:
    """The fleet at one moment; `at` by time.monotonic()."""

    at: float
    running: int
    desired: int
    problems: tuple[str, ...]
    errors: tuple[tuple[str, str, int], ...]
    """Where it was, what, and how often until now."""
    hosts: tuple[str, ...]
    """Of each running crawler: the name of its node's host, which is what the container's id begins with."""


@dataclass
class Watch:
    """The lines of `trawl status --json`, asked for again and again."""

    seen: list[Seen] = field(default_factory=list)

    def follow(self, lines: Any) -> None:
        """Read until the loop ends; what is not a status (a line of an error) counts as a fleet without crawlers."""
        for line in lines:
            self.seen.append(_seen(line))

    def whole(self) -> bool:
        """Whether the newest status is of this moment and has a running crawler for every slot."""
        last = self.seen[-1] if self.seen else None
        return last is not None and time.monotonic() - last.at < 5 and last.running >= last.desired > 0

    def problems(self, since: float) -> list[str]:
        """What `trawl status` named as a problem, or as an error that had come up, since then, each once, in order."""
        known = {error for one in self.seen if one.at < since for error in one.errors}
        mine = [one for one in self.seen if one.at >= since]
        news = (f"{where}: {what}" for one in mine for where, what, _ in (each for each in one.errors if each not in known))
        return list(dict.fromkeys((*(what for one in mine for what in one.problems), *news)))


def _seen(line: str) -> Seen:
    try:
        status = json.loads(line)
    except ValueError:
        status = {}
    return Seen(
        at=time.monotonic(),
        running=sum(one["state"] == "running" for one in status.get("crawlers", [])),
        desired=sum(one["desired"] for one in status.get("services", [])),
        problems=tuple(one["what"] for one in status.get("problems", [])),
        errors=tuple((one["where"], one["what"], one["times"]) for one in status.get("errors", [])),
        hosts=tuple(one["node"].rpartition("@")[2] for one in status.get("crawlers", []) if one["state"] == "running"),
    )


@contextmanager
def watch(*docker_words: str) -> Iterator[Watch]:
    """Follow the fleet by `docker DOCKER_WORDS`, which runs a shell in a container that none of the faults touches."""
    loop = "while :; do trawl status --json; sleep 0.5; done"
    process = subprocess.Popen(
        ("docker", *docker_words, "sh", "-c", loop), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    seen = Watch()
    reader = threading.Thread(target=seen.follow, args=(process.stdout,), daemon=True)
    reader.start()
    try:
        yield seen
    finally:
        process.terminate()
        process.wait(60)


def ask(address: str, path: str, body: object = None) -> Any:
    """What the forum at this address answers."""
    data = None if body is None else json.dumps(body).encode()
    with _DIRECT.open(urllib.request.Request(f"http://{address}:8765{path}", data=data), timeout=20) as answer:
        return json.load(answer)
