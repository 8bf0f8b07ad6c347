"""Flower's defaults for `celery -A tasks flower`, started in this folder. Its options and FLOWER_* variables win."""

import os

address = os.environ.get("FLOWER_ADDRESS", "127.0.0.1")  # it asks nobody for a password, and its pages can stop workers
