"""Somebody who has just got this project: a copy of the checkout in an empty home folder, and what a login shell has.

Nothing of the developer's environment is there: no TRAWL_ variable, no environment of Python, no cache. What the network of this
machine needs (PIP_ and UV_ variables, a certificate) stays.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .processes import wait_until

ROOT = Path(__file__).parents[2]
INSTALL = "make install && . .venv/bin/activate"  # as README.md prints it
IN_A_TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
INSTALLED_FROM = ("pyproject.toml", "constraints.txt", "deploy/locked.txt", "deploy/embedded.txt")
_OF_THE_NETWORK = re.compile(r"(PIP|UV)_(?!USER|REQUIRE_VIRTUALENV)|SSL_CERT_|REQUESTS_CA")


def copy_of_the_checkout(folder: Path) -> Path:
    """What a clone would hold, with changes that are not committed yet; nothing else but what `make install` has made."""
    names = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(["git", "-C", str(ROOT), *names], capture_output=True, text=True, check=True).stdout
    files = {folder / name: ROOT / name for name in filter(None, listed.split("\0")) if (ROOT / name).is_file()}
    for place, within, there in os.walk(folder):
        within[:] = [name for name in within if name not in (".venv", "__pycache__")]
        for path in {Path(place) / name for name in there} - files.keys():
            path.unlink()
    for path, original in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(original, path)
    return folder


@dataclass
class Newcomer:
    """A home folder with a checkout in it, and a shell; `install` runs what the first page prints."""

    home: Path
    environment: dict[str, str] = field(default_factory=dict)
    install_s: float = 0.0
    install_cpu_s: float = 0.0

    @property
    def checkout(self) -> Path:
        return self.home / "trawl"

    @property
    def has_installed(self) -> bool:
        """Whether what is installed in this home is what the checkout would install now."""
        files = (*INSTALLED_FROM, ".venv/.installed")
        return all((self.checkout / name).is_file() for name in files) and all(
            (self.checkout / name).read_bytes() == (ROOT / name).read_bytes() for name in INSTALLED_FROM
        )

    def arrive(self) -> None:
        """Everything that another one has left is gone, but what was installed from the same files."""
        kept = {self.checkout} if self.has_installed else set()
        self.home.mkdir(parents=True, exist_ok=True)
        for path in self.home.iterdir():
            if path not in kept:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        copy_of_the_checkout(self.checkout)
        kept = {name: text for name, text in os.environ.items() if _OF_THE_NETWORK.match(name)}
        python = Path(sys.base_prefix) / "bin"
        self.environment = kept | {"HOME": str(self.home), "PATH": f"{python}:/usr/local/bin:/usr/bin:/bin", "TERM": "dumb"}

    def install(self) -> None:
        """Run the first command as printed, and keep the environment that it leaves behind. Where it is done, it does nothing."""
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        code, said = self.run(f"{INSTALL} && env -0 > {self.home}/environment", self.checkout)
        assert code == 0, said
        after, self.install_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - begun
        self.install_cpu_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        lines = (self.home / "environment").read_text().split("\0")
        self.environment = dict(line.split("=", 1) for line in lines if "=" in line)

    def run(self, text: str, folder: Path, answer: str = "", timeout_s: float = 600, **more: str) -> tuple[int, str]:
        """Exit code and output of a command line in bash. With an `answer` it has a terminal, where that is typed."""
        command = ["bash", "-o", "pipefail", "-c", text]
        if answer:
            command = [sys.executable, "-c", IN_A_TERMINAL, *command]
        environment = self.environment | more
        done = subprocess.run(
            command, cwd=folder, env=environment, input=answer, capture_output=True, text=True, timeout=timeout_s, check=False
        )
        return done.returncode, done.stdout + done.stderr

    def start(self, text: str, folder: Path, log: Path, **more: str) -> subprocess.Popen[bytes]:
        """A command that goes on, with its output in `log`, at once, as a terminal has it."""
        environment = self.environment | {"PYTHONUNBUFFERED": "1"} | more
        place: dict[str, Any] = {"cwd": folder, "env": environment, "stdin": subprocess.DEVNULL}
        with log.open("wb") as file:
            return subprocess.Popen(["bash", "-c", f"exec {text}"], **place, stdout=file, stderr=file)

    def stop(self, process: subprocess.Popen[bytes], log: Path) -> tuple[int, str]:
        """Ctrl-C; the code is that of SIGKILL where that does not end it."""
        process.send_signal(signal.SIGINT)
        try:
            process.wait(120)
        except subprocess.TimeoutExpired:
            process.kill()
        return process.wait(), log.read_text(errors="replace")

    @contextmanager
    def going_on(self, text: str, folder: Path, until: str, log: Path, **more: str) -> Iterator[subprocess.Popen[bytes]]:
        """The command runs, and has said `until` (a pattern); Ctrl-C ends it, without a traceback.

        A worker of Celery ends with 1 then, as Celery has decided (`celery.apps.worker.install_worker_int_handler`).
        """
        process = self.start(text, folder, log, **more)
        try:
            wait_until(lambda: re.search(until, log.read_text(errors="replace")), lambda: log.read_text(errors="replace"), 180)
            yield process
        finally:
            code, said = self.stop(process, log)
        assert code in {0, 130, -signal.SIGINT, 1 if text.startswith("celery -A tasks worker") else 0}, f"{code}: {said}"
        assert "Traceback" not in said, said
