"""Grafana's dashboards: the files are the code's, and every query asks for metrics that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml

from monitoring.dashboards import DASHBOARDS, SOURCE, WIDTH, files
from monitoring.metrics.fleet import METRICS

ROOT = Path(__file__).resolve().parents[3]
GRAFANA = ROOT / "deploy" / "grafana"
RECORDED = [
    rule
    for group in yaml.safe_load((ROOT / "deploy/prometheus/recording.yml").read_text("utf-8"))["groups"]
    for rule in group["rules"]
]


def test_the_files_are_what_the_code_writes() -> None:
    written = {path.name: path.read_text("utf-8") for path in (GRAFANA / "dashboards").iterdir()}
    assert written == files(), "run `make docs`"


def test_each_query_names_metrics_and_labels_that_are_exported_or_recorded() -> None:
    exported = {spec.name: {*spec.labels, "le"} for spec in METRICS}
    exported |= {
        f"{spec.name}_{end}": {*spec.labels, "le"} for spec in METRICS if spec.kind == "histogram" for end in ("bucket", "count")
    }
    recorded = {rule["record"]: {rule["record"].partition(":")[0]} for rule in RECORDED}
    queries = [(legend, query) for one in DASHBOARDS for panel in one.panels for legend, query in panel.queries.items()]
    for legend, query in [*queries, *(("", rule["expr"]) for rule in RECORDED)]:
        named = re.findall(r"(?:\w+:)?\b(?:collector|trawl)_\w+(?::\w+)?", query)
        assert named, query
        known = exported if legend == "" and query in {rule["expr"] for rule in RECORDED} else {**exported, **recorded}
        assert set(named) <= set(known), query
        labels = {*re.findall(r"(\w+)=~?\"", query), *re.findall(r"{{(\w+)}}", legend)}
        assert labels <= set().union(*(known[name] for name in named)), query


def test_panels_have_a_place_of_their_own_and_the_data_source_is_the_provisioned_one() -> None:
    (source,) = yaml.safe_load((GRAFANA / "provisioning/datasources/trawl.yml").read_text("utf-8"))["datasources"]
    assert {"type": source["type"], "uid": source["uid"]} == SOURCE
    for text in files().values():
        dashboard = json.loads(text)
        taken: set[tuple[int, int]] = set()
        for panel in dashboard["panels"]:
            at = panel["gridPos"]
            cells = {(at["x"] + dx, at["y"] + dy) for dx in range(at["w"]) for dy in range(at["h"])}
            assert not cells & taken, panel["title"]
            assert at["x"] + at["w"] <= WIDTH
            taken |= cells
        assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
        assert all(panel["description"] for panel in dashboard["panels"])


def test_a_choice_is_a_label_of_the_metric_that_it_is_read_from_and_every_panel_heeds_it() -> None:
    for one in (dashboard for dashboard in DASHBOARDS if dashboard.choice):
        (metric,) = [spec for spec in METRICS if spec.name == one.choice_of]
        assert one.choice in metric.labels
        assert all(f'{one.choice}=~"${one.choice}"' in query for panel in one.panels for query in panel.queries.values())
