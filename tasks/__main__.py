"""`python -m tasks worker|beat|flower`: the command `celery -A tasks`, with this application in every current folder."""

from __future__ import annotations

import sys

from celery.__main__ import main

import tasks  # found in `sys.modules` by Celery, which would look into the current folder first

if __name__ == "__main__":
    sys.argv = ["celery", "-A", tasks.__name__, *sys.argv[1:]]
    main()
