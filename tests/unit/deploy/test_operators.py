"""deploy/kubernetes-operators: what it says of deployments, ports, secrets and metrics of deploy/kubernetes is so."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Any

import pytest
import yaml

from monitoring.metrics.fleet import METRICS
from tests.support import stack_file
from tests.support.compose_file import ROOT

KUBERNETES, OPERATORS = ROOT / "deploy/kubernetes", ROOT / "deploy/kubernetes-operators"


def documents(folder: Any) -> list[dict[str, Any]]:
    files = sorted(one for one in folder.glob("*.yaml") if one.name != "kustomization.yaml")
    return [document for file in files for document in yaml.safe_load_all(file.read_text())]


FLEET, ADDED = documents(KUBERNETES), documents(OPERATORS)


def test_nodes_are_scaled_by_the_crawlers_that_are_wanted_and_the_places_that_a_node_has() -> None:
    deployments = {one["metadata"]["name"]: one for one in FLEET if one["kind"] == "Deployment"}
    known = {spec.name: spec.labels for spec in METRICS}
    (generated,) = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())["configMapGenerator"]
    literals = generated["literals"]
    for scaled in (one["spec"] for one in ADDED if one["kind"] == "ScaledObject"):
        deployment = deployments[scaled["scaleTargetRef"]["name"]]["spec"]
        (container,) = deployment["template"]["spec"]["containers"]
        (places,) = (one["value"] for one in container["env"] if one["name"] == "TRAWL_NODE_CRAWLERS")
        (trigger,) = scaled["triggers"]
        metric, label, service = re.search(r"(trawl_\w+)\{(\w+)!?=\"(\w+)\"\}", trigger["metadata"]["query"]).groups()  # type: ignore[union-attr]
        assert label in known[metric]
        (queues,) = (one for one in literals if f"$({one.partition('=')[0]})" in container["command"])
        assert queues.partition("=")[2] in ("crawlers", f"crawlers.{service}")
        assert trigger["metadata"]["threshold"] == places
        assert trigger["metadata"]["query"].endswith(f" + {places}"), "one node more than is needed"
        assert scaled["minReplicaCount"] == deployment["replicas"]


def test_the_exporter_is_scraped_by_a_port_and_labels_that_its_service_has() -> None:
    (monitor,) = (one["spec"] for one in ADDED if one["kind"] == "ServiceMonitor")
    (service,) = (one for one in FLEET if one["kind"] == "Service" and one["metadata"]["name"] == "exporter")
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["endpoints"][0]["port"] in {port["name"] for port in service["spec"]["ports"]}


def test_the_rules_are_those_of_prometheus() -> None:
    assert stack_file.RULES_FILE.read_text() == stack_file.rules_text(), "run `make stack`"
    (rule,) = (one for one in ADDED if one["kind"] == "PrometheusRule")
    assert len([one for group in rule["spec"]["groups"] for one in group["rules"] if "alert" in one]) > 20


def test_the_secret_from_a_vault_is_the_one_that_the_fleet_reads() -> None:
    (secret,) = (one["spec"]["target"]["name"] for one in ADDED if one["kind"] == "ExternalSecret")
    assert set(re.findall(r"'secretKeyRef': \{'name': '(\w+)'", str(FLEET))) == {secret}


@pytest.mark.processes
@pytest.mark.skipif(not shutil.which("kubectl"), reason="there is no kubectl")
def test_kustomize_builds_them() -> None:
    done = subprocess.run(["kubectl", "kustomize", str(OPERATORS)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\nkind: ") == len(FLEET) + 1 + len(ADDED)  # and the generated environment
    scaled = {one["spec"]["scaleTargetRef"]["name"] for one in ADDED if one["kind"] == "ScaledObject"}
    built = [one for one in yaml.safe_load_all(done.stdout) if one["kind"] == "Deployment"]
    assert {one["metadata"]["name"] for one in built if "replicas" not in one["spec"]} == scaled, "apply would set KEDA's back"


@pytest.mark.processes
@pytest.mark.skipif(not shutil.which("kubectl"), reason="there is no kubectl")
@pytest.mark.parametrize(("name", "added"), [("egress", {"NetworkPolicy"}), ("backup", {"CronJob", "PersistentVolumeClaim"})])
def test_kustomize_builds_the_additions(name: str, added: set[str]) -> None:
    folder = ROOT / f"deploy/kubernetes-{name}"
    done = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\nkind: ") == len(FLEET) + 1 + len(documents(folder))
    assert {one["kind"] for one in documents(folder)} == added


def test_the_backup_is_made_as_worker_control_runs_and_its_command_exists() -> None:
    (job,) = (one for one in documents(ROOT / "deploy/kubernetes-backup") if one["kind"] == "CronJob")
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (control,) = (one for one in FLEET if one["metadata"]["name"] == "worker-control" and one["kind"] == "Deployment")
    running = control["spec"]["template"]["spec"]
    assert pod["securityContext"] == running["securityContext"]
    assert pod["containers"][0]["securityContext"] == running["containers"][0]["securityContext"]
    assert pod["containers"][0]["env"] == running["containers"][0]["env"]
    compose = yaml.safe_load((ROOT / "deploy/compose.backup.yml").read_text())["services"]["backup"]
    assert all(
        "trawl backup create /backups" in str(command) for command in (pod["containers"][0]["command"], compose["command"])
    )
    (beside,) = pod["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert beside["labelSelector"]["matchLabels"].items() <= control["spec"]["template"]["metadata"]["labels"].items()
