"""deploy/: the stack for Swarm, the manifests for Kubernetes and both pipelines say what docker-compose.yml says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import compose_file, stack_file
from tests.support.compose_file import ROOT
from workers.process.exit_kinds import container_s

SERVICES = compose_file.services(compose_file.example())
DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"


@cache
def _manifests() -> tuple[dict[str, Any], ...]:
    names = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())["resources"]
    assert {*names, "kustomization.yaml"} == {path.name for path in KUBERNETES.iterdir()}
    return tuple(one for name in names for one in yaml.safe_load_all((KUBERNETES / name).read_text()))


def _of_kind(kind: str) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in _manifests() if one["kind"] == kind}


def _pod(deployment: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = deployment["spec"]["template"]["spec"]
    return pod


# Swarm


def test_the_stack_is_made_from_the_compose_file() -> None:
    assert stack_file.FILE.read_text() == stack_file.text(), "run `make stack`"


def test_the_stack_has_nothing_that_swarm_refuses_or_makes_public() -> None:
    stack = yaml.safe_load(stack_file.FILE.read_text())
    assert stack.keys() == {"version", "services", "secrets", "networks", "volumes"}
    assert stack["services"].keys() == SERVICES.keys() - {"forum"}
    for name, service in stack["services"].items():
        refused = {"build", "depends_on", "restart", "profiles", "ports", "container_name", "mem_limit", "cpus", "pids_limit"}
        assert not refused & service.keys(), name
        assert service["command"] == SERVICES[name].raw["command"] or "${" in str(service["command"]), name
        assert service["deploy"]["update_config"]["failure_action"] == "rollback"
        volumes = service.get("volumes", [])
        assert "tmpfs" not in service, "Swarm ignores it"
        assert ({"type": "tmpfs", "target": "/tmp"} in volumes) == bool(service.get("read_only")), name
        stateful = any(str(volume).partition(":")[0] in ("redis-data", "database") for volume in volumes)
        assert service["deploy"]["update_config"]["order"] == ("stop-first" if stateful else "start-first"), name
        assert bool(service["deploy"].get("placement")) == stateful, name


@pytest.mark.processes
@pytest.mark.skipif(not shutil.which("docker"), reason="there is no docker client")
@pytest.mark.parametrize("files", [(stack_file.FILE,), (stack_file.FILE, stack_file.API_FILE), (stack_file.USERS_FILE,)])
def test_the_docker_client_takes_the_stack(files: tuple[Path, ...], tmp_path: Path) -> None:
    given = {**compose_file.example(), "TRAWL_SITES_DIR": "/srv/sites", "HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    given |= {"TRAWL_API_ACT_TOKEN": "x", "TRAWL_REDIS_PASSWORD": "of-a-test"}
    command = ["docker", "stack", "config", *(word for file in files for word in ("-c", str(file)))]
    done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    for name, service in yaml.safe_load(done.stdout)["services"].items():
        secrets = {one["source"] for one in service.get("secrets", [])}
        with_user = stack_file.USERS_FILE in files
        assert any(one.startswith("redis_") for one in secrets) == with_user, name
        assert ("signing_key" in secrets) == (name not in ("redis", "exporter")), name
        assert (":of-a-test@" in str(service) or "--requirepass" in str(service)) == (not with_user), name
    del given["TRAWL_SITES_DIR"]
    done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=60, check=False)
    assert "the folder of site files" in done.stderr


def test_the_users_stack_is_made_from_its_compose_file() -> None:
    assert stack_file.USERS_FILE.read_text() == stack_file.users_text(), "run `make stack`"


def test_the_apis_stack_is_made_from_its_compose_file() -> None:
    assert stack_file.API_FILE.read_text() == stack_file.api_text(), "run `make stack`"
    (api,) = yaml.safe_load(stack_file.API_FILE.read_text())["services"].values()
    assert "ports" not in api
    assert api["secrets"] == ["signing_key"], "of the stack that it is deployed with"


# The fleet's file


def test_trawl_toml_reaches_each_container_of_the_fleet() -> None:
    stack = yaml.safe_load(stack_file.FILE.read_text())["services"] | yaml.safe_load(stack_file.API_FILE.read_text())["services"]
    pods = _of_kind("Deployment") | {"api": _api_manifests()["Deployment"]}
    for name in {*SERVICES, "api"} - {"redis", "forum"}:
        assert name == "api" or SERVICES[name].volumes["/app/trawl.toml"] == "/dev/null", "unless TRAWL_CONFIG names a file"
        assert "${TRAWL_CONFIG:-/dev/null}:/app/trawl.toml:ro" in stack[name]["volumes"], name
        pod = _pod(pods[name])
        (mount,) = [one for one in pod["containers"][0]["volumeMounts"] if one["name"] == "config"]
        assert (mount["mountPath"], mount["subPath"]) == ("/app/trawl.toml", "trawl.toml"), name
        assert {"name": "config", "configMap": {"name": "trawl-config", "optional": True}} in pod["volumes"], name


# Kubernetes


def _api_manifests() -> dict[str, dict[str, Any]]:
    parts = yaml.safe_load_all((DEPLOY / "kubernetes-api/api.yaml").read_text())
    return {one["kind"]: one for one in parts}


def test_the_api_is_the_one_of_compose_and_hears_labelled_namespaces_alone() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.api.yml").read_text())["services"]["api"]
    found = _api_manifests()
    pod = _pod(found["Deployment"])
    (container,) = pod["containers"]
    assert container["command"] == compose["command"].split()
    for probe in ("startupProbe", "livenessProbe"):
        assert container[probe]["exec"]["command"] == compose["healthcheck"]["test"][1:]
    named = {one["name"] for one in container["env"]}
    assert named == {"TRAWL_SIGNING_KEY", "TRAWL_REDIS_URL", "TRAWL_API_ACT_TOKEN", "TRAWL_API_READ_TOKEN"}
    for one in container["env"]:
        assert one["valueFrom"]["secretKeyRef"]["name"] == "trawl"
    exporter = _pod(_of_kind("Deployment")["exporter"])
    assert {key: pod[key] for key in pod if key not in ("containers", "volumes")} == {
        key: exporter[key] for key in exporter if key not in ("containers", "volumes")
    }
    assert container["securityContext"] == exporter["containers"][0]["securityContext"]
    labels = _pod_labels(found["Deployment"])
    assert found["Service"]["spec"]["selector"].items() <= labels.items()
    policy = found["NetworkPolicy"]["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= labels.items()
    assert policy["ingress"][0]["from"] == [{"namespaceSelector": {"matchLabels": {"trawl/api": "true"}}}]
    assert yaml.safe_load((DEPLOY / "kubernetes-api/kustomization.yaml").read_text())["resources"] == [
        "../kubernetes",
        "api.yaml",
    ]


def _filled(word: str) -> str:
    """A word of a command as Kubernetes reads it, with the variables of the configMap."""
    given = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())["configMapGenerator"][0]["literals"]
    values = dict(one.split("=", 1) for one in given)
    return re.sub(r"\$\((\w+)\)", lambda found: values.get(found[1], found[0]), word)


def test_each_service_is_a_deployment_with_the_same_command_and_check() -> None:
    found = _of_kind("Deployment")
    assert found.keys() == SERVICES.keys() - {"forum", "redis"}
    for name, deployment in found.items():
        (container,) = _pod(deployment)["containers"]
        command = [_filled(word) for word in container["command"]]
        assert command == list(SERVICES[name].command), name
        for probe in ("startupProbe", "livenessProbe"):
            check = [word for word in SERVICES[name].healthcheck if word != "--end"]  # Kubernetes itself ends what hangs
            assert container[probe]["exec"]["command"] == check, name
    assert [*_of_kind("StatefulSet")] == ["redis"]


def test_pods_have_no_rights_and_the_time_that_crawlers_need() -> None:
    for name, deployment in {**_of_kind("Deployment"), **_of_kind("StatefulSet")}.items():
        pod = _pod(deployment)
        (container,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert container["securityContext"]["readOnlyRootFilesystem"] is True, name
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}, name
        assert pod["automountServiceAccountToken"] is False, name
        assert pod["enableServiceLinks"] is False, "variables such as REDIS_PORT would be set"
        mounted = {one["name"] for one in container["volumeMounts"]}
        declared = {one["name"] for one in pod.get("volumes", [])}
        claimed = {one["metadata"]["name"] for one in deployment["spec"].get("volumeClaimTemplates", [])}
        assert mounted == declared | claimed, name
        if name != "redis":
            assert pod["terminationGracePeriodSeconds"] == container_s(10), name
            assert pod["shareProcessNamespace"] is True, "the pause container reaps what crawlers leave behind"
            assert container["resources"]["limits"]["memory"], name


def test_budgets_services_and_policies_find_their_pods() -> None:
    labels = [_pod_labels(one) for one in (*_of_kind("Deployment").values(), *_of_kind("StatefulSet").values())]
    selectors = [one["spec"]["selector"]["matchLabels"] for one in _of_kind("PodDisruptionBudget").values()]
    selectors += [one["spec"]["selector"] for one in _of_kind("Service").values()]
    selectors += [one["spec"]["podSelector"]["matchLabels"] for one in _of_kind("NetworkPolicy").values()]
    for selector in selectors:
        assert any(selector.items() <= each.items() for each in labels), selector
    assert {"worker-list", "worker-detail", "beat"} == _of_kind("PodDisruptionBudget").keys()
    assert _of_kind("Deployment")["worker-control"]["spec"]["strategy"] == {"type": "Recreate"}


def _pod_labels(deployment: dict[str, Any]) -> dict[str, str]:
    labels: dict[str, str] = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == labels
    return labels


@pytest.mark.processes
@pytest.mark.skipif(not shutil.which("kubectl"), reason="there is no kubectl")
def test_kustomize_builds_the_manifests() -> None:
    done = subprocess.run(["kubectl", "kustomize", str(KUBERNETES)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\nkind: ") == len(_manifests()) + 1  # and the generated environment
    assert not re.search(r"password: *\S", done.stdout)
    with_api = ["kubectl", "kustomize", str(DEPLOY / "kubernetes-api")]
    done = subprocess.run(with_api, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\nkind: ") == len(_manifests()) + 1 + len(_api_manifests())


@pytest.mark.processes
@pytest.mark.skipif(not shutil.which("kubectl"), reason="there is no kubectl")
def test_with_users_each_pod_has_the_url_that_it_has_in_compose() -> None:
    words = ["kubectl", "kustomize", str(DEPLOY / "kubernetes-users")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    compose = yaml.safe_load((DEPLOY / "compose.users.yml").read_text())["services"]
    pods = {one["metadata"]["name"]: one for one in yaml.safe_load_all(done.stdout) if "template" in one.get("spec", {})}
    assert pods.keys() == compose.keys()
    for name, found in pods.items():
        (container,) = _pod(found)["containers"]
        urls = [one["valueFrom"]["secretKeyRef"] for one in container.get("env", []) if one["name"] == "TRAWL_REDIS_URL"]
        role = compose[name]["secrets"][0].removeprefix("redis_")
        assert urls == ([{"name": "trawl-users", "key": role}] if name != "redis" else []), name
        assert ("TRAWL_SIGNING_KEY" in str(container)) == (name not in ("redis", "exporter")), name
    (redis,) = _pod(pods["redis"])["containers"]
    mounted = {one["mountPath"]: one["name"] for one in redis["volumeMounts"]}
    started = compose_file.filled(compose["redis"]["command"], {})
    assert redis["command"] == [*started[:2], "/run/secrets/redis.acl", *started[3:]]
    assert mounted == {"/data": "data", "/run/secrets": "users"}
    (made,) = (one for one in yaml.safe_load_all(done.stdout) if one["kind"] == "ConfigMap")
    assert made["data"].items() >= {"TRAWL_NAMESPACE": "fleet", "TRAWL_SHUTDOWN_GRACE_S": "10"}.items()


# pipelines

JOB_WORDS = {"stage", "script", "image", "services", "variables", "rules", "cache", "before_script", "artifacts", "timeout"}


@pytest.mark.processes
def test_each_job_of_gitlabs_pipeline_is_in_a_stage_and_runs_what_exists() -> None:
    pipeline = yaml.safe_load((DEPLOY / "gitlab-ci.yml").read_text())
    jobs = {name: job for name, job in pipeline.items() if name not in ("stages", "variables") and not name.startswith(".")}
    assert {"lint", "test", "build", "scan", "push", "deploy", "rollback"} == jobs.keys()
    assert {job["stage"] for job in jobs.values()} == {*pipeline["stages"]}
    for name, job in jobs.items():
        assert job.keys() <= {*JOB_WORDS, "environment"}, name
        _runs_what_exists([*job.get("before_script", []), *job["script"]])
    assert all(rule["when"] == "manual" for name in ("deploy", "rollback") for rule in jobs[name]["rules"])
    rolled = set(re.findall(r"[\w-]+", jobs["rollback"]["script"][0].partition(" in ")[2].partition(";")[0]))
    assert rolled == SERVICES.keys() - {"forum", "redis"}


@pytest.mark.processes
def test_each_job_of_githubs_workflow_needs_jobs_that_exist_and_runs_what_exists() -> None:
    workflow = yaml.safe_load((DEPLOY / "github-actions.yml").read_text())
    assert workflow[True].keys() == {"push", "pull_request", "workflow_dispatch"}  # `on` is a boolean in YAML 1.1
    jobs = workflow["jobs"]
    for name, job in jobs.items():
        assert job.get("needs", name) in jobs
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step)
        _runs_what_exists([step["run"] for step in job["steps"] if "run" in step])


def _runs_what_exists(lines: list[str]) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = "\n".join(lines)
    assert set(re.findall(r"\bmake ([a-z][\w-]*)(?= *$| #)", text, re.MULTILINE)) <= targets
    for path in set(re.findall(r"\bdeploy/[\w./-]+", text)) - {"deploy/signing.key"}:  # which the job itself writes
        assert (ROOT / path).exists(), path
    done = subprocess.run(["sh", "-n"], input=text, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
