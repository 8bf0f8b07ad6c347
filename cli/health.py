"""`trawl health`: apart from the other commands, whose modules take longer to load than the check itself."""

from __future__ import annotations

import sys
from pathlib import Path

from redis_components.errors import ConfigError
from redis_components.server.variables import load_env_file, project_dir, variable
from workers.node.health_check import main as check

ROLES = ("worker", "beat")
USAGE = """Usage: trawl health [worker|beat|http://127.0.0.1:PORT/PATH]

Exit code 0 and a line if the worker (or beat) of this machine does its job, or waits for a known reason, else 1. Neither Redis
nor Celery is asked: it reads the status files in TRAWL_HEALTH_DIR. Flower and the exporter are asked by HTTP:
trawl health http://127.0.0.1:5555/healthcheck, http://127.0.0.1:9410/livez
"""


def health_dir() -> Path:
    """Return the folder of `workers.environment.variables.Health`, without its imports."""
    if named := variable("TRAWL_HEALTH_DIR"):
        return Path(named).expanduser().absolute()
    data = variable("TRAWL_DATA_DIR")
    return (Path(data).expanduser().absolute() if data else project_dir() / "data") / "run" / "health"


def main(arguments: list[str]) -> int:
    """Check one process; return the exit code, 2 for wrong use."""
    target = arguments[0] if arguments else "worker"
    if target in ("-h", "--help"):
        sys.stdout.write(USAGE)
        return 0
    if len(arguments) > 1 or not (target in ROLES or target.startswith("http://")):
        sys.stderr.write(f"trawl health {' '.join(arguments)}: name worker, beat, or the address of Flower or the exporter\n")
        return 2
    if target.startswith("http://"):
        return check(target)
    try:
        load_env_file()
        return check(f"{health_dir()}/{target}")
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2
