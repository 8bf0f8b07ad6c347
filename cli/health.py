"""`trawl health`: apart from the other commands, whose modules take longer to load than the check itself."""

from __future__ import annotations

import sys
from pathlib import Path

from redis_components.errors import ConfigError
from redis_components.server.variables import load_env_file, project_dir, variable
from workers.node.health_check import main as check

ROLES = ("worker", "beat")


def health_dir() -> Path:
    """Return the folder of `workers.environment.variables.Health`, without its imports."""
    if named := variable("TRAWL_HEALTH_DIR"):
        return Path(named).expanduser().absolute()
    data = variable("TRAWL_DATA_DIR")
    return (Path(data).expanduser().absolute() if data else project_dir() / "data") / "run" / "health"


def main(arguments: list[str]) -> int:
    """Check one process; return the exit code, 2 for wrong use."""
    target = arguments[0] if arguments else "worker"
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
