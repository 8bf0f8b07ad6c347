"""The fleet's HTTP API: jobs and services for programs, and the part of scrapyd's that its clients use.

python -m monitoring.api

access.py    tokens, scopes, guesses, the audit   routes.py   /api/v1
entrance.py  what requests carry, and its check   scrapyd.py  schedule.json, listjobs.json, …
"""
