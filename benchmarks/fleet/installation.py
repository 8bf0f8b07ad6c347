"""What an installation into an environment that is there moves: `pip install --dry-run`, in real environments.

    python -m benchmarks.fleet.installation [--python /path/to/python]

Each environment is made by `python -m venv` with the pins of its row, and what they require. pip then plans the installation of
this checkout, and of the frontier alone (`packaging/frontier`); nothing is changed by that. A package is "moved" if it was there
in another version, "added" if it was not there. It needs a package index.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.support.report import BenchmarkFailed, Report, options

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = {
    "scrapy-redis of 2025": ("scrapy==2.13.4", "scrapy-redis==0.9.1", "redis==5.2.1", "twisted==24.11.0"),
    "Django and Celery of 2025": ("django==5.2.1", "celery==5.5.3", "redis==5.2.1", "sqlalchemy==2.0.41"),
    "Scrapy and Celery, one minor version behind": ("scrapy==2.18.0", "celery==5.6.3", "redis==7.4.1", "sqlalchemy==2.0.58"),
}
WHAT = {"the fleet": ROOT, "the frontier alone": ROOT / "packaging/frontier"}


def main() -> int:
    """Make each environment, plan, print the report."""
    parser = options(__doc__)
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the environments (default: this one)")
    chosen = parser.parse_args()
    report = Report(title="Installation", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    rows = []
    for name, pins in ENVIRONMENTS.items():
        with tempfile.TemporaryDirectory(prefix="trawl-installation-") as folder:
            _run(chosen.python, "-m", "venv", folder)
            pip = (f"{folder}/bin/python", "-m", "pip", "--disable-pip-version-check")
            _run(*pip, "install", "--quiet", *pins)
            there = {_normal(one["name"]): one["version"] for one in json.loads(_run(*pip, "list", "--format=json"))}
            for what, place in WHAT.items():
                planned = _planned(pip, place, Path(folder))
                moved = {key: (there[key], to) for key, to in planned.items() if key in there and there[key] != to}
                words = ", ".join(f"{key} {before} → {to}" for key, (before, to) in sorted(moved.items()))
                rows.append([f"{name}: {', '.join(pins)}", what, words or "nothing", len(planned.keys() - there.keys())])
                print(rows[-1], file=sys.stderr, flush=True)
    report.table(["environment", "installed", "moved", "packages added"], rows)
    report.finish(chosen)
    return 0


def _planned(pip: tuple[str, ...], place: Path, folder: Path) -> dict[str, str]:
    """Return what pip would install, by name."""
    file = folder / "report.json"
    _run(*pip, "install", "--quiet", "--dry-run", "--report", str(file), str(place))
    found = [one["metadata"] for one in json.loads(file.read_text())["install"]]
    return {_normal(one["name"]): one["version"] for one in found}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False)
    if done.returncode:
        raise BenchmarkFailed(f"{' '.join(command[:6])} ...: {done.stderr.strip()[-500:]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
