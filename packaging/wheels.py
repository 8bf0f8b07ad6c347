"""Reproducible builds of the three wheels: `python packaging/wheels.py [FOLDER]` (default: dist).

pip builds them; then each is packed again with the commit's date for every entry and without differences between checkouts (times
and modes of files), so that a wheel can be verified from its commit.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECTS = (".", "packaging/frontier", "packaging/reader")
LEAST = 315532800  # s: a ZIP file knows no time before 1980


def commit_time(root: Path) -> int:
    """Return the time of the commit (epoch, s), or SOURCE_DATE_EPOCH if set. Raises SystemExit."""
    if named := os.environ.get("SOURCE_DATE_EPOCH"):
        return max(int(named), LEAST)
    done = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit("no commit to take the date from: set SOURCE_DATE_EPOCH to a time in seconds")
    return max(int(done.stdout), LEAST)


def pack_again(wheel: Path, target: Path, at_s: int) -> None:
    """Write the files of `wheel` to `target` in the same order, all with the time `at_s` and readable by everyone."""
    when = time.gmtime(at_s)[:6]
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            info = zipfile.ZipInfo(entry.filename, when)
            info.create_system, info.external_attr = 3, 0o100644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(info, old.read(entry))


def build(root: Path, folder: Path) -> list[Path]:
    """Build them into `folder`; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    at_s = commit_time(root)
    with tempfile.TemporaryDirectory(prefix="trawl-wheels-") as name:
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-C", "apart=true"]
        subprocess.run([*command, "--wheel-dir", name, *PROJECTS], cwd=root, check=True)
        built = []
        for wheel in sorted(Path(name).iterdir()):
            target = folder / wheel.name
            pack_again(wheel, target, at_s)
            built.append(target)
    return built


def main() -> None:
    for wheel in build(ROOT, Path(sys.argv[1] if len(sys.argv) > 1 else "dist").resolve()):
        sys.stdout.write(f"{hashlib.sha256(wheel.read_bytes()).hexdigest()}  {wheel}\n")


if __name__ == "__main__":
    main()
