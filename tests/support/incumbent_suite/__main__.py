"""Run scrapy-redis's own tests on `redis_components`: `python -m tests.support.incumbent_suite [TESTS] [-- pytest's options]`.

TESTS is a folder or file of tests of another version of it, such as its repository's head; without it the tests of release
0.9.1 are downloaded from the package index. They run FLUSHALL, so they get a server of their own, and only that.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.support.redis_server import RedisServer

ROOT = Path(__file__).parents[3]
RELEASE = "scrapy-redis==0.9.1"


def download(folder: Path) -> Path:
    """The folder with the tests of the release, from its source distribution; nothing of it is installed."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary", ":all:"]
    subprocess.run([*pip, "--dest", folder, RELEASE], check=True, timeout=300)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as distribution:
        distribution.extractall(folder, filter="data")
    (tests,) = folder.glob("*/tests")
    return tests


def run(tests: Path, options: list[str]) -> int:
    """pytest's exit code for the tests, on a server that ends with this process."""
    with RedisServer() as server:
        # The suite connects to a host and a port and knows no password. The server listens on the loopback alone, for seconds.
        server.client().config_set("requirepass", "")
        command = [sys.executable, "-B", "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", tests]
        command += ["--continue-on-collection-errors", "-p", "no:cacheprovider", "-p", "no:valkey", "-p", f"{__package__}.alias"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "REDIS_HOST": "127.0.0.1", "REDIS_PORT": str(server.port)}
        return subprocess.run([*command, *options, tests], env=environment, timeout=600).returncode


def main(arguments: list[str]) -> int:
    """As the module's docstring says; the exit code is pytest's."""
    options = arguments[arguments.index("--") + 1 :] if "--" in arguments else []
    given = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if given:
        return run(Path(given[0]).resolve(), options)
    with tempfile.TemporaryDirectory(prefix="trawl-incumbent-") as folder:
        return run(download(Path(folder)), options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
