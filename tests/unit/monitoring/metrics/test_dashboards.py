"""Grafana's dashboards: every query asks for metrics that are exported, and the panels fit the page."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from monitoring.metrics.fleet import METRICS
from tests.support.dashboards import DASHBOARDS, queries

ROOT = Path(__file__).resolve().parents[4]
GRAFANA = ROOT / "deploy" / "grafana"
WIDTH = 24  # columns of Grafana's grid
RECORDED = [
    rule
    for group in yaml.safe_load((ROOT / "deploy/prometheus/recording.yml").read_text("utf-8"))["groups"]
    for rule in group["rules"]
]


def test_each_query_names_metrics_and_labels_that_are_exported_or_recorded() -> None:
    exported = {spec.name: {*spec.labels, "le"} for spec in METRICS}
    exported |= {
        f"{spec.name}_{end}": {*spec.labels, "le"} for spec in METRICS if spec.kind == "histogram" for end in ("bucket", "count")
    }
    recorded = {rule["record"]: {rule["record"].partition(":")[0]} for rule in RECORDED}
    for legend, query in [*queries(), *(("", rule["expr"]) for rule in RECORDED)]:
        named = re.findall(r"(?:\w+:)?\b(?:collector|trawl)_\w+(?::\w+)?", query)
        assert named, query
        known = exported if legend == "" and query in {rule["expr"] for rule in RECORDED} else {**exported, **recorded}
        assert set(named) <= set(known), query
        labels = {*re.findall(r"(\w+)=~?\"", query), *re.findall(r"{{(\w+)}}", legend)}
        assert labels <= set().union(*(known[name] for name in named)), query


def test_panels_have_a_place_of_their_own_and_the_data_source_is_the_provisioned_one() -> None:
    (source,) = yaml.safe_load((GRAFANA / "provisioning/datasources/trawl.yml").read_text("utf-8"))["datasources"]
    for dashboard in DASHBOARDS:
        sources = [target["datasource"] for panel in dashboard["panels"] for target in (panel, *panel["targets"])]
        assert all(one == {"type": source["type"], "uid": source["uid"]} for one in sources)
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
    for dashboard in DASHBOARDS:
        for choice in dashboard["templating"]["list"]:
            metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", choice["query"]).groups()  # type: ignore[union-attr]
            assert label in next(spec for spec in METRICS if spec.name == metric).labels
            assert all(f'{label}=~"${label}"' in query for _, query in queries(dashboard))
