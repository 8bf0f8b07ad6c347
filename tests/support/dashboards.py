"""The dashboards of deploy/grafana, as Grafana reads them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "grafana" / "dashboards"
DASHBOARDS: list[dict[str, Any]] = [json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))]


def queries(*dashboards: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield legend and PromQL of each query of these dashboards, by default of all."""
    for one in dashboards or DASHBOARDS:
        for panel in one["panels"]:
            yield from ((target["legendFormat"], target["expr"]) for target in panel["targets"])
