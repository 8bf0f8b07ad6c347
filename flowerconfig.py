"""Flower's defaults for `celery -A tasks flower`, started in this folder. Its options and FLOWER_* variables win."""

import os

address = os.environ.get("FLOWER_ADDRESS", "127.0.0.1")  # a public one is refused without a login (tasks/flower_crawlers.py)
tasks_columns = os.environ.get("FLOWER_TASKS_COLUMNS", "name,args,state,result,started,worker")  # of a crawler: its figures
