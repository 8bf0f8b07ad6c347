"""The peers' own virtual environment, `.venv-peers`: `python -m benchmarks.peers.environment` makes it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".venv-peers"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
STAMP = FOLDER / ".installed"


def interpreter() -> str | None:
    """Return the environment's Python, installed at first use; None, after a line with the reason, if that fails."""
    python = str(FOLDER / "bin" / "python")
    wanted = REQUIREMENTS.read_text(encoding="utf-8")
    if STAMP.exists() and STAMP.read_text(encoding="utf-8") == wanted:
        return python
    print(f"installing {REQUIREMENTS.relative_to(ROOT)} into {FOLDER.name} (once) ...", file=sys.stderr, flush=True)
    pip = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "-r",
        str(REQUIREMENTS),
        "-c",
        "constraints.txt",
    ]
    for command in ([sys.executable, "-m", "venv", str(FOLDER)], pip):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
        if done.returncode:
            reason = (done.stderr.strip() or "no reason given").splitlines()[-1]
            print(f"scrapy-redis is left out: its environment cannot be installed: {reason}", file=sys.stderr, flush=True)
            return None
    STAMP.write_text(wanted, encoding="utf-8")
    return python


if __name__ == "__main__":
    sys.exit(interpreter() is None)
