"""The site file that `trawl sites new` writes for a forum from nothing but its address."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def written_by_sites_new(url: str, folder: Path) -> str:
    """The file as it was written, but without politeness towards ourselves."""
    sites = folder / "written"
    environment = {**os.environ, "TRAWL_SITES_DIR": str(sites), "TRAWL_DATA_DIR": str(folder)}
    command = [sys.executable, "-m", "cli.main", "sites", "new", url, "--name", "written", "--contact", "me@example.org"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    text = (sites / "written.toml").read_text()
    changed, times = re.subn(r"^\[politeness\].*$", "[politeness]\nrate = 0\nconcurrency = 8", text, count=1, flags=re.MULTILINE)
    assert times == 1, text
    return changed
