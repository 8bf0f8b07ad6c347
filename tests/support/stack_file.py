"""deploy/stack.yml from docker-compose.yml: what `docker stack deploy` takes of it, deploy/stack.api.yml from
deploy/compose.api.yml and stack.users.yml from compose.users.yml. `make stack` writes them.

Swarm refuses what Compose allows (`depends_on` with conditions, ports as text, `profiles`, `name`), ignores other things, and
publishes every port on all addresses: ports of the loopback are left out. A test compares the file with this.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from tests.support.compose_file import ROOT

FILE = ROOT / "deploy/stack.yml"
API_FILE = ROOT / "deploy/stack.api.yml"
USERS_FILE = ROOT / "deploy/stack.users.yml"
USERS_HEADER = """\
# stack.yml with a Redis user for each kind of process (docs/security.md, "Users of Redis"), made from docker-compose.yml and
# compose.users.yml by `make stack`. A separate file: where Swarm merges two, a variable stays that the second one takes away.
#
#   deploy/new-users.sh              (makes deploy/users, with the image)
#   docker stack deploy --with-registry-auth -c deploy/stack.users.yml trawl
#
# A stack that ran without users is removed first (`docker stack rm trawl`): a process with a user refuses a Redis that does not
# know it, and Swarm would take the service back.
#
# Users need a namespace, here `fleet` unless the environment names one: with another one than before the fleet begins with an
# empty frontier. A secret of Swarm never changes: other users are other secrets, TRAWL_USERS=2 gives them other names.
"""
API_HEADER = """\
# The HTTP API (docs/http-api.md) of a stack, made from compose.api.yml by `make stack`:
#
#   docker stack deploy --with-registry-auth -c deploy/stack.yml -c deploy/stack.api.yml trawl
#
# No port is published: put a proxy with TLS into the stack's network.
"""
HEADER = """\
# The fleet for Docker Swarm, made from docker-compose.yml by `make stack`; docs/deployment.md says how to use it.
#
#   set -a; . ./.env; set +a
#   docker stack deploy --with-registry-auth -c deploy/stack.yml trawl
#
# No port is published: Swarm would publish Flower and exporter on every address of every node. Put a proxy with TLS and a
# login into the stack's network, or publish them in mode host behind a firewall.
"""
PROMETHEUS = ROOT / "deploy/prometheus"
RULES_FILE = ROOT / "deploy/kubernetes-operators/rules.yaml"
RULES_HEADER = "# The rules of ../prometheus for the Prometheus operator, made by `make stack`.\n"
_LEFT_OUT = ("build", "depends_on", "restart", "profiles", "ports", "mem_limit", "cpus", "pids_limit", "security_opt", "tmpfs")
_STATEFUL = ("redis", "worker-control")  # two of them at one time would share their data


def stack() -> dict[str, Any]:
    """The whole document."""
    new_names = re.sub(r"(\$\{\w+:-)\$\{\w+:-([^}]*)\}", r"\1\2", (ROOT / "docker-compose.yml").read_text())  # Swarm nests none
    raw = yaml.safe_load(new_names)
    services = {name: _service(name, service) for name, service in raw["services"].items() if "profiles" not in service}
    # A secret of Swarm never changes: other keys are another secret, under another name.
    secrets = {
        name: {"name": f"${{TRAWL_{name.upper()}_NAME:-trawl_{name}}}", "file": secret["file"].replace("./deploy/", "./")}
        for name, secret in raw["secrets"].items()
    }
    return {"version": "3.9", "services": services, "secrets": secrets, "networks": raw["networks"], "volumes": raw["volumes"]}


def text() -> str:
    return HEADER + yaml.dump(stack(), Dumper=_Plain, sort_keys=False, width=1000)


def api_text() -> str:
    raw = yaml.safe_load((ROOT / "deploy/compose.api.yml").read_text())
    services = {name: _service(name, service) for name, service in raw["services"].items()}
    return API_HEADER + yaml.dump({"version": "3.9", "services": services}, Dumper=_Plain, sort_keys=False, width=1000)


def users_text() -> str:
    whole, raw = stack(), yaml.safe_load((ROOT / "deploy/compose.users.yml").read_text())
    for name, added in raw["services"].items():
        service = whole["services"][name]
        service |= {"command": added["command"]} if "command" in added else {}
        service["secrets"] = [*service.get("secrets", []), *added["secrets"]]
        service["environment"] |= added.get("environment", {})
        service["environment"] = {key: value for key, value in service["environment"].items() if value != ""}
    for name, secret in raw["secrets"].items():
        file = secret["file"].replace("./deploy/", "./")
        whole["secrets"][name] = {"name": f"trawl_{name}_${{TRAWL_USERS:-1}}", "file": file}
    return USERS_HEADER + yaml.dump(whole, Dumper=_Plain, sort_keys=False, width=1000)


def _service(name: str, compose: dict[str, Any]) -> dict[str, Any]:
    service = {key: value for key, value in compose.items() if key not in _LEFT_OUT}
    service["image"] = compose["image"]
    if "healthcheck" in service:
        service["healthcheck"] = dict(service["healthcheck"])
        if service["healthcheck"].pop("start_interval", None):  # unknown to Swarm, for which a task runs once it is healthy
            service["healthcheck"]["interval"] = "15s"
    if "volumes" in service:
        service["volumes"] = [
            volume.replace(":-./sites}", ":?the folder of site files, the same on every node}") for volume in service["volumes"]
        ]
    for path in compose.get("tmpfs", ()):  # Swarm ignores `tmpfs` without a word, and a root that is read-only has no other place
        service.setdefault("volumes", []).append({"type": "tmpfs", "target": path})
    stateful = name in _STATEFUL
    limits = {"memory": compose["mem_limit"]} if "mem_limit" in compose else {}
    limits |= {"cpus": str(compose["cpus"])} if "cpus" in compose else {}
    limits |= {"pids": compose["pids_limit"]} if "pids_limit" in compose else {}
    service["deploy"] = {
        "replicas": compose.get("deploy", {}).get("replicas", 1),
        **({"placement": {"constraints": ["node.labels.trawl.data == true"]}} if stateful else {}),
        "restart_policy": {"condition": "any", "delay": "2s"},
        "update_config": {
            "parallelism": 1,
            "order": "stop-first" if stateful else "start-first",
            "failure_action": "rollback",
            "monitor": "30s",
        },
        "rollback_config": {"parallelism": 1, "order": "stop-first" if stateful else "start-first"},
        **({"resources": {"limits": limits}} if limits else {}),
    }
    return service


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def rules_text() -> str:
    """The PrometheusRule of deploy/prometheus: every group of its files."""
    groups = [
        group for name in ("alerts.yml", "recording.yml") for group in yaml.safe_load((PROMETHEUS / name).read_text())["groups"]
    ]
    rule = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "trawl", "labels": {"app.kubernetes.io/name": "trawl"}},
        "spec": {"groups": groups},
    }
    return RULES_HEADER + yaml.dump(rule, Dumper=_Plain, sort_keys=False, width=1000)


if __name__ == "__main__":
    RULES_FILE.write_text(rules_text())
    FILE.write_text(text())
    API_FILE.write_text(api_text())
    USERS_FILE.write_text(users_text())
