"""The fleet's HTTP API: jobs and services for programs, and the part of scrapyd's that its clients use.

python -m monitoring.api

access.py   tokens, scopes, the audit        routes.py   /api/v1
body.py     what requests carry              scrapyd.py  schedule.json, listjobs.json, …
"""
