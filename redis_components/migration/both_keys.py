"""The keys of one spider in both packages: mostly the same ones."""

from __future__ import annotations

from dataclasses import dataclass

from redis_components.keys import CrawlKeys


@dataclass(frozen=True, kw_only=True)
class BothKeys:
    """The keys of a crawl in scrapy-redis and in Trawl."""

    theirs: CrawlKeys
    ours: CrawlKeys

    @property
    def shared_queue(self) -> bool:
        """Both packages use the same key for the queue."""
        return self.theirs.requests == self.ours.requests

    @property
    def shared_dupefilter(self) -> bool:
        """Both packages use the same key for fingerprints."""
        return self.theirs.dupefilter == self.ours.dupefilter
