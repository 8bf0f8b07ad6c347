"""Every Redis key of the frontier and the fleet: one method per key, with its type, its writers and its readers.

The keys of an application are in a class of the same form in its own package. No key is built anywhere else.
`docs/reference/redis-keys.md` is generated from these docstrings (`python -m redis_components.keys`), and a test compares the
two. The first line of each docstring is `TYPE: content`.
"""

from .crawl import CrawlKeys, filled, lane_busy_key, lane_state_key, limits_key
from .fleet import FleetKeys

__all__ = ["CrawlKeys", "FleetKeys", "filled", "lane_busy_key", "lane_state_key", "limits_key"]
