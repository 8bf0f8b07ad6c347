"""What a process is started with, as JSON: `python -m tests.support.start_facts WORDS...`; it then ends with the exit code 3."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading

import psutil

if __name__ == "__main__":
    itself = psutil.Process()
    facts = {
        "arguments": sys.argv[1:],
        "path": sys.path,
        "environment": {name: value for name, value in os.environ.items() if name != "LC_CTYPE"},
        "shown environment": itself.environ(),
        "shown command": " ".join(itself.cmdline()),
        "folder": os.getcwd(),  # noqa: PTH109 - as a string
        "parent": os.getppid(),
        "own session": os.getsid(0) == os.getpid(),
        "threads": threading.active_count(),
        "files": sorted(os.listdir("/proc/self/fd"))[:-1],  # noqa: PTH208 - the last is the folder itself
        "main": sys.modules["__main__"].__spec__.name,  # type: ignore[union-attr]
        "warnings": sys.warnoptions,
        "refused": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
        "read": sys.stdin.read(),
    }
    print(json.dumps(facts, indent=1))  # noqa: T201 - for who started it
    print("said on stderr", file=sys.stderr)  # noqa: T201
    sys.exit(3)
