"""Crawler processes and Celery workers for tests: real ones, on the toy project."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def toy_environment(redis_url: str, data: Path, **more: str) -> dict[str, str]:
    """The environment of a process that shall work with the toy project on this Redis."""
    return {
        **os.environ,
        "TRAWL_REDIS_URL": redis_url,
        "TRAWL_DATA_DIR": str(data),
        "SCRAPY_SETTINGS_MODULE": "tests.support.toy.settings",
        "TRAWL_FLEET": "toy=1",
        "PYTHONUNBUFFERED": "1",
        **more,
    }


class Program:
    """A command in a session of its own, with everything it said in a file."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Path) -> None:
        self.log = log
        with log.open("ab") as file:
            self.process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
            )

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def wait(self, timeout_s: float = 15.0) -> int:
        """Its exit code; fails with what it said when it does not end in time."""
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout_s:g} s; it said:\n{self.said()}") from None


@contextmanager
def program(command: list[str], environment: dict[str, str], log: Path) -> Iterator[Program]:
    """Run a Python command; it is killed at the end of the block if it has not ended by then."""
    running = Program([sys.executable, *command], environment, log)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.kill()
        running.process.wait()
