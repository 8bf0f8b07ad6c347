"""What Prometheus and the status page of a fleet in containers have to show: every panel of the dashboards, and a picture."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from tests.support.dashboards import DASHBOARDS

from .engine import Project, docker

IMAGE = "prom/prometheus:v3.5.0"
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def available() -> bool:
    """Whether the image of deploy/compose.monitoring.yml, or a stand-in for it, is here."""
    return bool(docker("images", "-q", IMAGE).strip())


def filled(server: str) -> str:
    """How many panels of the dashboards have something to show, by the Prometheus at an address."""
    found = panels(server)
    empty = [name for name, shows in found.items() if not shows]
    return f"{len(found) - len(empty)} of {len(found)} panels have values; without: {', '.join(empty) or 'none'}"


def panels(server: str) -> dict[str, bool]:
    """`dashboard: panel` -> whether any of its queries has a value."""
    return {
        f"{dashboard['title']}: {panel['title']}": any(_values(server, target["expr"]) for target in panel["targets"])
        for dashboard in DASHBOARDS
        for panel in dashboard["panels"]
    }


def _values(server: str, query: str) -> list[Any]:
    asked = urllib.parse.urlencode({"query": re.sub(r"\$\w+", ".*", query)})
    with _DIRECT.open(f"http://{server}:9090/api/v1/query?{asked}", timeout=30) as answer:
        found: list[Any] = json.load(answer)["data"]["result"]
    return found


def picture(project: Project, path: Path, chromium: str) -> None:
    """The status page as it is now; the browser runs in the exporter's network, since the page answers to its own names only."""
    pid = project.containers("exporter")[0]["State"]["Pid"]
    photographed(chromium, "http://127.0.0.1:9410/", path, "nsenter", "-t", str(pid), "-n")


def photographed(chromium: str, url: str, path: Path, *before: str, size: tuple[int, int] = (1100, 900)) -> None:
    """A picture of a page; `before`: words before the browser's command."""
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage", "--no-first-run")
    shot = (f"--screenshot={path.resolve()}", f"--window-size={size[0]},{size[1]}", "--timeout=15000", url)
    subprocess.run((*before, chromium, *flags, *shot), check=True, capture_output=True, timeout=180)
