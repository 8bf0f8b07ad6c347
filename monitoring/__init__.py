"""Monitors the fleet from outside: a Prometheus exporter, a status page and the HTTP API, read from Redis at each request.

exporter.py  `python -m monitoring.exporter`    app.py    its routes
source.py    the Redis that is read             metrics/  what Prometheus gets, as one table
pages/       the status page (templates/)       api/      `python -m monitoring.api`
"""
