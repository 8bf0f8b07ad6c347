"""Each documented variable reaches each process of the fleet, in each shipped way to start one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.commands.init import Host, units
from cli.views.environment import groups
from redis_components.server.variables import variable
from tests.support import compose_file
from tests.support.compose_file import ROOT
from workers.environment.declaration import is_secret, variable_name
from workers.environment.variables import COMPOSE

NAMES = {variable_name(field) for group in groups() for field in group.declared()}
SECRETS = {variable_name(field) for group in groups() for field in group.declared() if is_secret(group, field)}
MADE = {"TRAWL_REDIS_URL", "TRAWL_SIGNING_KEY_FILE", "TRAWL_NODE_CRAWLERS"}
"""Written by the file itself: from a password, a mounted secret, the places of a node."""
ENV_FILE = "${TRAWL_ENV_FILE:-/dev/null}"


def of_user(name: str) -> str:
    return f"of-the-user-{name.lower()}"


def containers(file: Path, given: dict[str, str], more: dict[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    """What each container of the fleet finds, with `given` in `.env` and `more` in the file of TRAWL_ENV_FILE."""
    raw = yaml.safe_load(file.read_text())["services"]
    for name, service in compose_file.services({**compose_file.example(), **given}, file).items():
        if name in ("redis", "forum"):
            continue
        assert raw[name]["env_file"] == [ENV_FILE], f"{name} reads the file of TRAWL_ENV_FILE"
        yield name, {**more, **service.environment}


@pytest.mark.parametrize("file", ["docker-compose.yml", "deploy/stack.yml", "deploy/stack.users.yml"])
def test_each_variable_reaches_each_container(file: str) -> None:
    users = {name: of_user(name) for name in NAMES - set(map(variable_name, COMPOSE))}
    for service, found in containers(ROOT / file, {**users, "TRAWL_SITES_DIR": "./sites"}, users):
        for name in users.keys() - MADE:
            assert found[name] == users[name], f"{file}: {service} does not have {name}"


@pytest.mark.parametrize("file", ["docker-compose.yml", "deploy/stack.yml"])
def test_a_secret_may_be_a_file_in_each_container(file: str, tmp_path: Path) -> None:
    (secret := tmp_path / "secret").write_text("of-a-file")
    more = {f"{name}_FILE": str(secret) for name in SECRETS}
    for service, found in containers(ROOT / file, {"TRAWL_SITES_DIR": "./sites"}, more):
        for name in SECRETS - {one.removesuffix("_FILE") for one in MADE}:
            assert variable(name, found) == "of-a-file", f"{file}: {service}, {name}"


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    for file in sorted(ROOT.glob("deploy/kubernetes*/*.yaml")):
        for one in yaml.safe_load_all(file.read_text()):
            job = one.get("spec", {}).get("jobTemplate", {})
            template = job.get("spec", one.get("spec", {})).get("template", {}) if isinstance(one.get("spec"), dict) else {}
            for container in template.get("spec", {}).get("containers", []) if "trawl" in str(template.get("metadata")) else []:
                if container["name"] != "redis":
                    yield f"{file.parent.name}/{file.name} {container['name']}", container


def test_each_variable_reaches_each_pod() -> None:
    found = dict(pods())
    assert len(found) == 8, "worker-list, -detail, -control, beat, exporter, flower, api, backup"
    for name, container in found.items():
        kinds = [kind for source in container["envFrom"] for kind in source]
        assert kinds == ["configMapRef", "secretRef"], name
        assert container["envFrom"][0]["configMapRef"] == {"name": "trawl"}
        assert container["envFrom"][1]["secretRef"] == {"name": "trawl-env", "optional": True}
        own = {one["name"] for one in container["env"]} - {"FLOWER_BASIC_AUTH"}
        fixed = {one["name"] for one in container["env"] if "value" in one}
        assert fixed <= {"TRAWL_NODE_CRAWLERS", "TRAWL_EXPORTER_HOSTS"}, name
        assert own <= NAMES, name


def test_units_leave_each_variable_to_the_env_file_of_the_project(tmp_path: Path) -> None:
    commands = {role: ["/bin/echo", role] for role in ("worker", "beat", "flower", "exporter", "api")}
    host = Host(project=tmp_path, data=tmp_path / "data", user="u", stop_s=60, commands=commands, backups=tmp_path / "b")
    for name, text in units(host).items():
        if name.endswith(".service"):
            assert re.findall(r"^Environment=(.*)$", text, re.MULTILINE) == ["PYTHONUNBUFFERED=1"]
            assert f"\nWorkingDirectory={tmp_path}\n" in text
    for program in ("celeryconfig.py", "monitoring/exporter.py", "cli/main.py"):
        assert "load_env_file()" in (ROOT / program).read_text(), f"{program} reads .env"
    assert "program(lambda:" in (ROOT / "monitoring/api/__main__.py").read_text(), "the exporter's frame reads .env"
