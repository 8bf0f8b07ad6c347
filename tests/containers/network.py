"""The network of one container, cut by packet filters in its own network namespace; needs root."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

RESOLVER = "127.0.0.11"  # the engine's name server, as containers see it


def address(container: dict[str, Any]) -> str:
    """The container's address in the first of its networks."""
    return str(next(iter(container["NetworkSettings"]["Networks"].values()))["IPAddress"])


@contextmanager
def dropped(container: dict[str, Any], other: str) -> Iterator[None]:
    """Every packet between the container and an address is dropped, both ways, and nobody is told."""
    rules = [("OUTPUT", "-d", other, "-j", "DROP"), ("INPUT", "-s", other, "-j", "DROP")]
    for rule in rules:
        _filter(container, "-A", *rule)
    try:
        yield
    finally:
        for rule in rules:
            _filter(container, "-D", *rule)


@contextmanager
def counted(container: dict[str, Any], other: str) -> Iterator[Any]:
    """Count packets with data that come from an address; gives a function that says how many there were."""
    rule = ("INPUT", "-s", other, "-p", "tcp", "--tcp-flags", "PSH", "PSH")
    _filter(container, "-I", *rule)
    try:
        yield lambda: int(_filter(container, "-nvxL", "INPUT", "1").split()[0])
    finally:
        _filter(container, "-D", *rule)


def _filter(container: dict[str, Any], *words: str) -> str:
    enter = ("nsenter", "-t", str(container["State"]["Pid"]), "-n", "iptables", "-w")
    return subprocess.run((*enter, *words), check=True, capture_output=True, text=True).stdout
