"""Circuit breaker of a site with a file: its own verdicts on pages, and probes; on top of `workers/breaker`.

Crawlers load `middleware` and `missing` through the settings; the task `probe_sites` calls `probe`.
"""
