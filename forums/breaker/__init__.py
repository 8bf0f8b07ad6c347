"""The breaker of a site: noticing that it answers with something else than its pages, holding it, and trying it again.

Crawlers have `watch` and `site_files` by the settings, beat sends `probing`.
"""

from .drift_store import drifts, forgive
from .state import close_breaker, open_breaker

__all__ = ["close_breaker", "drifts", "forgive", "open_breaker"]
