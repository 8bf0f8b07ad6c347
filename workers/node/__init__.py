"""One node of the fleet: what a Celery worker hosts, its capacity and its heartbeat."""
