"""Job of one measured process, written by the benchmark and read by `benchmarks.peers.crawl`.

The peers' own environment imports this too, so it needs nothing but the standard library.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Job:
    """One crawl in one process."""

    peer: str
    """vanilla, trawl, scrapy-redis, or scrapy-redis+stats."""
    spider: str
    """A name in `benchmarks.peers.spiders.SPIDERS`."""
    site: str
    redis_url: str = ""
    profile: str = "equal"
    """equal: the same quiet settings for each peer; fleet: those of `workers/settings.py`; defaults: Scrapy's own; quiet: those
    with a quiet log, no remote consoles and the fleet's number of requests at a time.
    """
    settings: dict[str, Any] = field(default_factory=dict)
    """Override the profile and the peer's own settings: a null puts Scrapy's default back, a dict is laid over theirs."""
    urls: tuple[str, ...] = ()
    """Start URLs of vanilla Scrapy; for the others the benchmark puts them into Redis."""
    options: dict[str, Any] = field(default_factory=dict)
    """Of the spider."""
    stamps: bool = False
    """Report the time of each page, too."""

    def save(self, path: Path) -> None:
        """Write it as JSON: an environment variable would be too short for thousands of start URLs."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Job:
        """Read what `save` wrote."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))
