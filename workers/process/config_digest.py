"""Digests of the files that all nodes share: site files, and what declares services and outputs of events.

A node sends them with its heartbeat, so that nodes that differ are noticed, and `trawl up` does not serve as one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from redis_components.server.fleet_file import fleet_files
from workers.application import application
from workers.state.nodes import NodeRecord

_Look = tuple[str, str, int, int]  # name within its folder, place, time of the last change (ns), size


@lru_cache(maxsize=8)
def _digest(looks: tuple[_Look, ...]) -> str:
    whole = hashlib.sha256()
    for name, path, _, _ in looks:
        with suppress(OSError):  # gone since
            whole.update(f"\0{name}\0".encode() + Path(path).read_bytes())
    return whole.hexdigest()[:12]


def shared_digests() -> tuple[str, ...]:
    """Return `<what>=<digest>` of each kind of files; files are read only when one was touched. Raises ConfigError."""
    places = {**fleet_files(), **application().shared_files()}
    return tuple(f"{what}={_digest(tuple(_shared_looks(place)))}" for what, place in places.items())


def _shared_looks(place: Path | None) -> Iterator[_Look]:
    """Yield name, path, time of the last change and size of the file, or of each TOML file below the folder."""
    if place is None:
        return
    for path in sorted(place.rglob("*.toml")) if place.is_dir() else [place]:
        with suppress(OSError):
            found = path.stat()
            yield os.fspath(path.relative_to(place)), os.fspath(path), found.st_mtime_ns, found.st_size


def differences(nodes: Iterable[NodeRecord]) -> list[str]:
    """Return a sentence for each kind of files that these nodes do not have alike; nodes of an older Trawl send none."""
    found: dict[str, dict[str, list[str]]] = {}
    for node in nodes:
        for what, _, digest in (one.partition("=") for one in node.files):
            found.setdefault(what, {}).setdefault(digest, []).append(node.name)
    return [
        f"nodes have different {what}: " + " and ".join(_named(names) for names in by_digest.values())
        for what, by_digest in found.items()
        if len(by_digest) > 1
    ]


def _named(names: list[str]) -> str:
    more = f" with {len(names) - 1:,} more" if len(names) > 1 else ""
    return f"{min(names)}{more}"
