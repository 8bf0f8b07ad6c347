"""Circuit breaker: holds a site or a host that answers with walls instead of pages, and tries it again later.

state.py   opens and closes breakers in Redis     hosts.py   decides it in a crawler, for hosts of any spider

An application adds a verdict by the content of pages (`workers.application`).
"""

from .state import close_breaker, open_breaker, probe_sites

__all__ = ["close_breaker", "open_breaker", "probe_sites"]
