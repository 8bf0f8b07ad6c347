"""`python -m demo`: watch the whole system work on a living forum.

A Redis, a forum, a Celery worker with two crawlers, beat, Flower and the exporter are started; the forum is crawled while it
grows; a crawler is killed; the database is compared with the forum. KEEP=1 leaves everything running for a look around; see
`demo/processes.py` for more.

Exit code 0 if everything is stored, 1 if not or if something failed, 2 for a wrong option, 130 after Ctrl-C.
"""

from __future__ import annotations

import os
import signal
import sys

INTERRUPTED = 130


def main() -> int:
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))  # while modules are loaded: nothing has been started
    from cli.processes import Interrupts

    from .command import run

    interrupts = Interrupts()
    interrupts.listen()
    return run(interrupts)


if __name__ == "__main__":
    sys.exit(main())
