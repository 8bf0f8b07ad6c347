"""The peers' own virtual environments, `.venv-peers` and beside it one for each other framework: `python -m
benchmarks.peers.environment` makes the first one.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
REQUIREMENTS = Path(__file__).with_name("requirements.txt")


def interpreter(framework: str = "") -> str | None:
    """Return the Python of scrapy-redis, or of another framework, installed at first use; None, after a line with the reason, if
    that fails.
    """
    folder = ROOT / f".venv-peers{framework and '-'}{framework}"
    requirements = REQUIREMENTS.with_stem(f"requirements-{framework}") if framework else REQUIREMENTS
    python, stamp = str(folder / "bin" / "python"), folder / ".installed"
    wanted = requirements.read_text(encoding="utf-8")
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    print(f"installing {requirements.relative_to(ROOT)} into {folder.name} (once) ...", file=sys.stderr, flush=True)
    pip = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "-r",
        str(requirements),
        *([] if framework else ["-c", "constraints.txt"]),
    ]
    for command in ([sys.executable, "-m", "venv", str(folder)], pip):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
        if done.returncode:
            reason = (done.stderr.strip() or "no reason given").splitlines()[-1]
            print(
                f"{framework or 'scrapy-redis'} is left out: its environment cannot be installed: {reason}",
                file=sys.stderr,
                flush=True,
            )
            return None
    stamp.write_text(wanted, encoding="utf-8")
    return python


if __name__ == "__main__":
    sys.exit(interpreter() is None)
