"""Every benchmark, one after the other, on this machine: `python -m benchmarks [NAME ...]`.

Each writes `benchmarks/results/NAME.md` (and NAME.json, which is not kept in the repository) when it has come to its end; one
that fails leaves its older page alone, the others go on, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).with_name("results")
SPEED = (
    "crawl_speed",
    "settings_share",
    "scaling",
    "chains",
    "start_tasks",
    "memory",
    "dupefilters",
    "supervision",
    "viewers",
    "scrape",
    "holds",
    "lanes",
    "growth",
    "neighbours",
    "writer_rows",
    "freshness",
    "reading",
    "sizes",
    "patterns",
)
"""What `make bench` runs."""
DEATHS = ("kill_table", "deaths", "service_deaths", "unconsumed_items", "books")
"""What `make deaths` runs."""
LIVING = ("living",)
"""What `make living` runs."""
POLITE = ("politeness", "refusals", "pages_at_scale", "installation", "peers_table", "runs_cost")
"""Up to twenty minutes each, by name: sites with limits, one that refuses, a million rows, a package index, other frameworks."""


def module_of(name: str) -> str:
    """Return the module of a benchmark, in `frontier`, `fleet` or `forums`. Raises ValueError for an unknown one."""
    found = [path for path in Path(__file__).parent.glob(f"*/{name}.py") if path.parent.name in ("frontier", "fleet", "forums")]
    if not found:
        raise ValueError(f"no benchmark is called {name!r}")
    return f"benchmarks.{found[0].parent.name}.{name}"


def main() -> int:
    """Run what is named, or all of SPEED."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"among {', '.join((*SPEED, *DEATHS, *LIVING, *POLITE))}")
    names = parser.parse_args().names or SPEED
    if unknown := set(names) - {*SPEED, *DEATHS, *LIVING, *POLITE}:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    failed = []
    for name in names:
        begun = time.monotonic()
        print(f"== {name}", file=sys.stderr, flush=True)
        files = ["--page", str(RESULTS / f"{name}.md"), "--out", str(RESULTS / f"{name}.json")]
        if subprocess.run([sys.executable, "-m", module_of(name), *files], cwd=ROOT, check=False).returncode:
            failed.append(name)
        print(f"== {name}: {(time.monotonic() - begun) / 60:.1f} minutes", file=sys.stderr, flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
