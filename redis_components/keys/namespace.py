"""The key of a namespace by which crawlers and everything that looks at a crawl from outside agree."""

from __future__ import annotations

from dataclasses import dataclass, field

from redis_components.server.names import fleet_namespace, prefixed


@dataclass(frozen=True, kw_only=True)
class NamespaceKeys:
    """Keys of one namespace; a fleet has more (`workers/state/keys.py`)."""

    prefix: str = field(default_factory=lambda: prefixed("trawl:fleet", fleet_namespace()))

    def crawls(self) -> str:
        """HASH: where the crawl of each service is (spider -> JSON with its keys, its Redis where that is not the fleet's, the
        consumer and the bounds of its items), also after its crawlers have ended.

        Written by crawlers when they begin; read by the writer and by everything that looks at a crawl from outside.
        """
        return f"{self.prefix}:crawls"
