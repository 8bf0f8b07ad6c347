"""What deploy/ adds to docker-compose.yml: Prometheus with Grafana, the HTTP API, PostgreSQL, users of Redis."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from monitoring.api.__main__ import DEFAULT_PORT
from tests.support import compose_file
from tests.support.compose_file import ROOT, example
from tests.support.dashboards import FOLDER

ADDITIONS = ("compose.monitoring.yml", "compose.api.yml", "compose.postgres.yml")
BACKED_UP = ("compose.postgres.yml", "compose.backup.yml", "compose.backup-postgres.yml")
USERS: dict[str, Any] = yaml.safe_load((ROOT / "deploy/compose.users.yml").read_text())
SECRETS = {"GRAFANA_PASSWORD": "x" * 24, "TRAWL_API_ACT_TOKEN": "y" * 24, "POSTGRES_PASSWORD": "z" * 24}
DOCUMENTS: dict[str, dict[str, Any]] = {name: yaml.safe_load((ROOT / "deploy" / name).read_text()) for name in ADDITIONS}
SERVICES: dict[str, dict[str, Any]] = {key: value for one in DOCUMENTS.values() for key, value in one["services"].items()}


def test_they_are_confined_come_back_and_are_published_on_this_machine_only() -> None:
    for name, service in SERVICES.items():
        if "image" not in service:  # one of docker-compose.yml
            continue
        assert (service["init"], service["restart"], service["read_only"]) == (True, "unless-stopped", True), name
        assert service["cap_drop"] == ["ALL"], name
        assert service["mem_limit"], name
        assert "cpus" in service, name
        assert service["healthcheck"]["test"], name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), name
        assert not service["image"].endswith(":latest"), name


def test_what_is_mounted_is_there_and_what_is_written_has_a_volume() -> None:
    for document in DOCUMENTS.values():
        volumes = [volume for service in document["services"].values() for volume in service.get("volumes", [])]
        for source, _, rest in (volume.partition(":") for volume in volumes):
            if source == "${TRAWL_CONFIG":  # the fleet's own file
                assert rest == "-/dev/null}:/app/trawl.toml:ro"
            elif source.startswith("./"):
                assert (ROOT / source).is_dir(), source
                assert rest.endswith(":ro"), source
            else:
                assert source in document["volumes"]


def test_prometheus_and_grafana_find_rules_dashboards_and_each_other() -> None:
    (option,) = [word for word in SERVICES["prometheus"]["command"] if word.startswith("--config.file=")]
    inside = Path(option.partition("=")[2])
    assert f"./deploy/prometheus:{inside.parent}:ro" in SERVICES["prometheus"]["volumes"]
    assert (ROOT / "deploy" / "prometheus" / inside.name).is_file()
    (source,) = yaml.safe_load((ROOT / "deploy/grafana/provisioning/datasources/trawl.yml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    (provider,) = yaml.safe_load((ROOT / "deploy/grafana/provisioning/dashboards/trawl.yml").read_text())["providers"]
    folder = provider["options"]["path"]
    assert f"./deploy/grafana/dashboards:{folder}:ro" in SERVICES["grafana"]["volumes"]
    home = SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home in {f"{folder}/{path.name}" for path in FOLDER.iterdir()}


def test_the_database_is_reached_by_who_writes_and_who_shows_it_and_reaches_nobody() -> None:
    document = DOCUMENTS["compose.postgres.yml"]
    assert document["networks"] == {"database": {"internal": True}}
    assert {name for name, one in document["services"].items() if "database" in one["networks"]} == {
        "postgres",
        "worker-control",
        "exporter",
    }
    assert document["services"]["postgres"]["networks"] == ["database"]


def test_the_api_listens_where_it_is_published_and_asked() -> None:
    api = SERVICES["api"]
    assert f"--port={DEFAULT_PORT}" in api["command"].split()
    assert api["ports"] == [f"127.0.0.1:{DEFAULT_PORT}:{DEFAULT_PORT}"]
    assert api["healthcheck"]["test"][-1] == f"http://127.0.0.1:{DEFAULT_PORT}/livez"


def test_with_users_each_process_has_its_url_from_a_secret_and_redis_is_the_same_but_for_the_password() -> None:
    services = compose_file.services(example())
    assert USERS["services"].keys() == services.keys() - {"forum"}
    plain, with_users = services["redis"].command, compose_file.filled(USERS["services"]["redis"]["command"], {})
    assert list(plain[3:]) == with_users[3:]
    assert (plain[1], with_users[1:3]) == ("--requirepass", ["--aclfile", "/run/secrets/redis_users"])
    for name, service in USERS["services"].items():
        (secret,) = service["secrets"]
        role = name.partition("-")[0]
        assert secret == {"redis": "redis_users"}.get(name, f"redis_{role}")
        assert USERS["secrets"][secret]["file"] == f"./deploy/users/{'redis.acl' if name == 'redis' else role}"
        if name != "redis":
            assert service["environment"]["TRAWL_REDIS_URL"] == "", "both would be refused"
            assert service["environment"]["TRAWL_REDIS_URL_FILE"] == f"/run/secrets/{secret}"


@pytest.mark.processes
@pytest.mark.parametrize("namespace", ["job42", ""])
def test_users_are_made_once_and_only_their_owner_reads_the_passwords(tmp_path: Path, namespace: str) -> None:
    """With the `trawl config acl` of this tree in place of the image's."""
    (tmp_path / "deploy").mkdir()
    shutil.copy(ROOT / "deploy/new-users.sh", tmp_path / "deploy")
    (tmp_path / ".env").write_text("TRAWL_REDIS_PASSWORD=abc\n" + (f"TRAWL_NAMESPACE={namespace}\n" if namespace else ""))
    used = namespace or USERS["x-user"]["TRAWL_NAMESPACE"].partition(":-")[2].rstrip("}")
    program = tmp_path / "bin/docker"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\n"
        f"cd {ROOT}; for last; do :; done\n"
        f'case "$*" in *TRAWL_NAMESPACE={used}*trawl:latest*) export TRAWL_NAMESPACE={used} ;; esac\n'
        f'echo "$last" | sed "s#/tmp/passwords#{tmp_path}/passwords#g" | sh -e\n'
    )
    program.chmod(0o755)
    path = os.pathsep.join((str(program.parent), str(Path(sys.executable).parent), os.environ["PATH"]))

    def run() -> str:
        command = ["sh", str(tmp_path / "deploy/new-users.sh")]
        return subprocess.run(
            command, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=True, timeout=60
        ).stdout

    assert run() == "made deploy/users\n"
    folder = tmp_path / "deploy/users"
    assert folder.stat().st_mode & 0o077 == 0
    made = {file.name: file.read_text() for file in folder.iterdir()}
    for secret in USERS["secrets"].values():
        assert Path(secret["file"]).name in made
    lines = {line.split()[1]: line for line in made.pop("redis.acl").splitlines()}
    assert lines["default"].endswith(f" on #{sha256(b'abc').hexdigest()} resetkeys resetchannels -@all +ping")
    for name, url in made.items():
        parts = urlsplit(url.strip())
        assert (parts.username, parts.hostname) == (name, "redis")
        assert f" #{sha256(str(parts.password).encode()).hexdigest()} " in lines[name]
        assert f"~{used}:" in lines[name]
    assert run() == ""


def _compose() -> list[str]:
    """The command of Docker Compose, [] where there is none."""
    for command in (["docker", "compose"], ["docker-compose"], [str(ROOT / ".venv-containers/bin/docker-compose")]):
        if (program := shutil.which(command[0])) and subprocess.run(
            [program, *command[1:], "version"], capture_output=True, check=False
        ).returncode == 0:
            return command
    return []


COMPOSE = _compose()


@pytest.mark.processes
@pytest.mark.skipif(not COMPOSE, reason="Docker Compose is not installed")
@pytest.mark.parametrize("names", [(name,) for name in ADDITIONS] + [("compose.backup.yml",), BACKED_UP], ids=" ".join)
def test_docker_compose_takes_them_and_demands_their_secrets(names: tuple[str, ...], tmp_path: Path) -> None:
    given = {**example(), **SECRETS, "HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    files = [word for name in names for word in ("-f", f"deploy/{name}")]
    command = [*COMPOSE, "-f", "docker-compose.yml", *files, "config", "--quiet"]
    done = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    for secret in SECRETS:
        del given[secret]
    done = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, timeout=60, check=False)
    assert ("set it in .env" in done.stderr) == (names != ("compose.backup.yml",)), "which has no secret of its own"


def test_backups_have_the_database_of_the_fleet_and_a_folder_that_the_images_user_may_write() -> None:
    backup, with_postgres = (yaml.safe_load((ROOT / "deploy" / name).read_text())["services"]["backup"] for name in BACKED_UP[1:])
    assert (ROOT / backup["extends"]["file"]).is_file(), "as seen from the folder of the first file"
    control = SERVICES["worker-control"]
    assert with_postgres["environment"]["TRAWL_DATABASE_URL"] == control["environment"]["TRAWL_DATABASE_URL"]
    assert with_postgres["networks"] == control["networks"]
    assert "postgresql-client" in (ROOT / with_postgres["build"]["dockerfile"]).read_text()
    (made,) = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if line.startswith("RUN install -d")]
    assert {volume.rpartition(":")[2] for volume in backup["volumes"]} <= {*made.split()}
