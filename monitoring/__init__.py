"""Watching the fleet from outside: a Prometheus exporter and a status page, read from Redis whenever somebody looks.

python -m monitoring.exporter

reading.py   one look at Redis                metrics.py   what Prometheus gets, as one table
page.py      what people get (page_style.py)  app.py       the HTTP routes
exporter.py  the command
"""
