"""Monitors the fleet from outside: a Prometheus exporter and a status page, read from Redis at each request.

python -m monitoring.exporter

source.py    the Redis that is read           metrics.py   what Prometheus gets, as one table
page.py      what people get (templates/)     app.py       the HTTP routes
exporter.py  the command                      shared_look.py  one reading for many requests
"""
