"""Environments of other people's software: outside the repository, made once, kept until what they hold changes.

They are in `$TRAWL_REAL_FORUMS_DIR`, else `~/.cache/trawl/real-forums`, one folder per software; removing a folder is safe.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def cache(name: str) -> Path:
    """The folder of one software's environment."""
    base = os.environ.get("TRAWL_REAL_FORUMS_DIR")
    return (Path(base) if base else Path.home() / ".cache" / "trawl" / "real-forums") / name


def pip_environment(name: str, requirements: Sequence[str], *, complete: bool = False) -> Path:
    """A virtual environment with `requirements` (pinned), and its Python; `complete`: whatever they ask for themselves."""
    folder = cache(name)
    python = folder / "bin" / "python"
    if _is_made(folder, requirements):
        return python
    shutil.rmtree(folder, ignore_errors=True)
    run([sys.executable, "-m", "venv", folder])
    run([python, "-m", "pip", "install", "--quiet", *(["--no-deps"] if complete else []), *requirements])
    _mark(folder, requirements)
    return python


def npm_environment(name: str, requirements: Sequence[str], *, scripts: bool = False) -> Path:
    """A folder with `node_modules` of `requirements` (pinned); `scripts`: their install scripts may run."""
    folder = cache(name)
    if _is_made(folder, requirements):
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "package.json").write_text("{}")
    options = [] if scripts else ["--ignore-scripts"]
    run(["npm", "install", "--silent", "--no-audit", "--no-fund", *options, *requirements], cwd=folder)
    _mark(folder, requirements)
    return folder


def ask(python: Path, script: Path, *arguments: str, environment: dict[str, str], cwd: Path) -> Any:
    """Run a script in another environment; what it prints as its last line is JSON."""
    done = run([python, script, *arguments], environment=environment, cwd=cwd)
    return json.loads(done.splitlines()[-1])


def free_port() -> int:
    """A TCP port of the loopback that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def bare_environment(**more: str) -> dict[str, str]:
    """Environment variables for a stranger's process: none of ours that would lead it to our packages or data."""
    ours = ("TRAWL_", "PYTHON", "VIRTUAL_ENV", "PYTEST", "COV_", "SCRAPY_", "DJANGO_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)} | more


def run(command: Sequence[str | Path], *, environment: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    """What a command printed. RuntimeError with what it said when it fails."""
    done = subprocess.run(
        command, env=environment or bare_environment(), cwd=cwd, capture_output=True, text=True, timeout=900, check=False
    )
    if done.returncode:
        said = f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        raise RuntimeError(f"{' '.join(map(str, command))} ended with exit code {done.returncode}:\n{said}")
    return done.stdout


def _is_made(folder: Path, requirements: Sequence[str]) -> bool:
    made = folder / "made-of.json"
    return made.exists() and json.loads(made.read_text()) == list(requirements)


def _mark(folder: Path, requirements: Sequence[str]) -> None:
    (folder / "made-of.json").write_text(json.dumps(list(requirements)))
