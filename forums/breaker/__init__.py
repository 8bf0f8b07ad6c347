"""Circuit breaker of a site: detects answers that are not the site's pages, holds the site, and probes it again.

Crawlers load `middleware`, `hosts` and `missing_site_file` through the settings; Celery beat sends `probe_sites`.
"""

from .drift_store import drifts, forgive
from .state import close_breaker, open_breaker

__all__ = ["close_breaker", "drifts", "forgive", "open_breaker"]
