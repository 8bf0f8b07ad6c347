"""Celery beat with a leader: one of several processes sends what is due."""
