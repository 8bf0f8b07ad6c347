"""`make try-scrapy VERSION=2.20.0`: the contract tests and crawls with another release of Scrapy, a pre-release too; `make
try-releases`: those of the fleet with the oldest releases that pyproject.toml allows, or with those that WITH names.

They are installed into `.venv-try-scrapy`, next to what `constraints.txt` pins. The exit code is that of pytest; 0 where the
index does not have a release.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".venv-try-scrapy"
TESTS = (
    "tests/contract/test_scrapy_internals.py",
    *(
        f"tests/integration/test_{name}.py"
        for name in (
            *("scheduler_alone", "scheduler_crawl", "scheduler_unfinished", "start_tasks_crawl", "spider_hooks", "downloads"),
            *("shared_stats", "custom_classes", "feed_exports", "persist_and_flush", "graceful_life", "forum_crawl"),
        )
    ),
)
FLEETS = (
    *("tests/contract", "tests/unit/tasks", "tests/integration/storage"),
    *(f"tests/integration/test_{name}.py" for name in ("tasks_base", "fleet_lives", "jobs", "flower", "connections", "beats")),
    *(f"tests/integration/test_{name}.py" for name in ("crawl_once", "pool_parent", "worker_events", "nodes_and_rolls")),
)


def main(arguments: list[str]) -> int:
    """The exit code; prints what is done."""
    words = " ".join(arguments).split()
    if not words:
        sys.stderr.write("name the release: make try-scrapy VERSION=2.20.0, make try-releases WITH='sqlalchemy==2.0.58'\n")
        return 2
    wanted = [word if "=" in word else f"scrapy=={word}" for word in words]
    for one in wanted:
        if not _is_in_index(one):
            sys.stdout.write(f"skipped: the package index has no {one}\n")
            return 0
    python = FOLDER / "bin/python"
    if not python.exists():
        _run(sys.executable, "-m", "venv", str(FOLDER))
    pip = (str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install")
    sys.stdout.write(f"installing {' '.join(wanted)} into {FOLDER.name} ...\n")
    sys.stdout.flush()
    _run(*pip, "-e", f"{ROOT}[dev]", "-c", str(ROOT / "constraints.txt"))
    _run(*pip, "--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", str(ROOT / "deploy/embedded.txt"))
    _run(*pip, "--pre", *wanted)  # after the rest, whose range they may be out of
    tests = TESTS if all(one.startswith("scrapy=") for one in wanted) else FLEETS
    return subprocess.run([str(python), "-m", "pytest", "-q", "-n", "2", *tests], cwd=ROOT, check=False).returncode


def _is_in_index(wanted: str) -> bool:
    with tempfile.TemporaryDirectory(prefix="try-scrapy-") as folder:
        command = [sys.executable, "-m", "pip", "--quiet", "download", "--pre", "--no-deps", "--dest", folder, wanted]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and "No matching distribution" not in done.stderr:
        sys.exit(done.stderr)  # no index, or something else is wrong with pip
    return done.returncode == 0


def _run(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr or done.stdout)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
