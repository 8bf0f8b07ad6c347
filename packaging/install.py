"""`pip install` with a line that says how far it is: `python packaging/install.py LOG PIP-ARGUMENTS…`.

pip is silent for minutes with --quiet, and prints some 300 lines without. Here a terminal shows one line, which changes, and a
log one for each call. Everything that pip says is in LOG. Needs nothing but the standard library.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

_STEPS = {"Collecting": "found", "Downloading": "downloaded"}


def main(arguments: list[str]) -> int:
    """Run pip; its exit code."""
    log, begun = Path(arguments[0]), time.monotonic()
    counts = dict.fromkeys(_STEPS.values(), 0)
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off", *arguments[1:]]
    with (
        log.open("a", encoding="utf-8") as file,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as pip,
    ):
        assert pip.stdout is not None
        for line in pip.stdout:
            file.write(line)
            word = line.split(maxsplit=1)[0] if line.strip() else ""
            if word in _STEPS:
                counts[_STEPS[word]] += 1
                _show(f"{counts['found']} packages found, {counts['downloaded']} downloaded", begun)
            elif line.startswith("Installing collected packages:"):
                _show(f"installing {line.count(',') + 1} packages (about a minute)", begun, end="\n")
            elif word == "ERROR:":
                _show("")
                sys.stderr.write(line)
    if pip.returncode == 0 and sys.stdout.isatty():
        _show("")
    return pip.returncode


def _show(text: str, begun: float | None = None, end: str = "") -> None:
    """On a terminal the line is written over; elsewhere only lines that end are written."""
    said = f"  {text}, {time.monotonic() - begun:.0f} s" if begun is not None else text
    if sys.stdout.isatty():
        sys.stdout.write(f"\r\x1b[2K{said}")
    elif end and text:
        sys.stdout.write(f"{said}{end}")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
