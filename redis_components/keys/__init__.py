"""Every Redis key of the frontier: one method per key, with its type, its writers and its readers.

The keys of the fleet and of an application are in classes of the same form in their packages. No key is built anywhere else.
`docs/reference/redis-keys.md` is generated from these docstrings (`make docs`), and a test compares the two.
The first line of each docstring is `TYPE: content`.
"""

from .crawl import CrawlKeys, CrawlRecord, CrawlRecords, NamespaceKeys, crawl_record_of, filled, keys_in, limits_key
from .frontier import lane_busy_key, lane_state_key

__all__ = [
    "CrawlKeys", "CrawlRecord", "CrawlRecords", "NamespaceKeys", "crawl_record_of", "filled", "keys_in", "lane_busy_key",
    "lane_state_key", "limits_key",
]  # fmt: skip
