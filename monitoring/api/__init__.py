"""The fleet's HTTP API: jobs, services and runs for programs.

python -m monitoring.api

access.py    tokens, scopes, guesses, the audit   routes.py   /api/v1
entrance.py  what requests carry, and its check
"""
