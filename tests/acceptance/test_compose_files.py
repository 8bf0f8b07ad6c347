"""docker-compose.yml, Dockerfile and deploy/: everything that they name exists, and nothing is forgotten.

What the files start is run by `test_compose_services.py` as processes, and by `make test-containers` in containers.
"""

from __future__ import annotations

import importlib.util
import json
import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml
from flower.options import default_options

from forums.sites import load_site
from tasks.base import celeryconfig
from tests.support import compose_file
from tests.support.compose_file import ROOT, ComposeService, MissingVariable
from workers.environment.declaration import DEFAULT_FLEET, parse_fleet
from workers.environment.machine import LEAST_SHARE_MB, WORKER_MB, memory_share_mb
from workers.process.exit_kinds import container_s

SERVICES = compose_file.services(compose_file.example())
OURS = {name: service for name, service in SERVICES.items() if name != "redis"}
WORKERS = {name: service for name, service in OURS.items() if "worker" in service.command}
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = [name.rstrip("*") for name in PROJECT["tool"]["setuptools"]["packages"]["find"]["include"]]


# variables


def test_nothing_starts_without_the_passwords_and_the_message_says_where_to_set_them() -> None:
    required = {name: complaint for name, complaint in compose_file.variables().items() if complaint is not None}
    assert set(required) == {"TRAWL_REDIS_PASSWORD", "FLOWER_BASIC_AUTH"} == set(compose_file.example())
    for name, complaint in required.items():
        assert "deploy/.env.example" in (complaint or "")
        others = {key: value for key, value in compose_file.example().items() if key != name}
        for given in (others, {**others, name: ""}):
            with pytest.raises(MissingVariable, match=name):
                compose_file.services(given)


def test_the_example_offers_every_variable_with_its_default() -> None:
    named = compose_file.variables()
    offered = compose_file.commented_example()
    offered.pop("GRAFANA_PASSWORD")  # of deploy/compose.monitoring.yml
    offered.pop("POSTGRES_PASSWORD")  # of deploy/compose.postgres.yml
    assert {*compose_file.left_empty()} == {"TRAWL_REDIS_PASSWORD", "FLOWER_BASIC_AUTH"}, (
        "a copy starts nothing before they are set"
    )
    assert {**compose_file.example(), **offered}.keys() == named.keys()
    text = (ROOT / "docker-compose.yml").read_text()
    for name, value in offered.items():
        default = re.search(rf"\$\{{{name}:-(?:\$\{{\w+:-)?([^}}]*)\}}", text)
        assert default, name
        assert value == default[1] or name == "TRAWL_DATABASE_URL", (
            f"{name}: the example says {value}, the default is {default[1]}"
        )


def test_old_names_of_variables_still_work() -> None:
    old = {
        "TRAWL_LIST_ROOM": "3",
        "TRAWL_DETAIL_ROOM": "5",
        "TRAWL_MAX_TASKS": "77",
        "TRAWL_SHUTDOWN_GRACE": "20",
        "TRAWL_TASKS": "a.b",
    }
    made = compose_file.services({**compose_file.example(), **old})
    assert (made["worker-list"].option("--concurrency"), made["worker-detail"].option("--concurrency")) == ("3", "5")
    environment = made["worker-list"].environment
    names = ("TRAWL_NODE_CRAWLERS", "TRAWL_MAX_QUEUED_THREADS", "TRAWL_SHUTDOWN_GRACE_S", "TRAWL_TASK_MODULES")
    assert [environment[name] for name in names] == ["3", "77", "20", "a.b"]


def test_every_variable_that_a_service_gets_is_read_by_somebody() -> None:
    sources = [path.read_text() for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    sources += [path.read_text() for path in (ROOT / "demo" / "sites").glob("*.toml")]
    for name in {*compose_file.image_environment(), *(key for service in OURS.values() for key in service.environment)}:
        if name in ("PATH", "LANG", "PYTHONPATH", "PYTHONUNBUFFERED"):  # which Python and the system read
            continue
        if name.startswith("FLOWER_"):
            assert name.removeprefix("FLOWER_").lower() in default_options, name
        else:
            field = re.compile(rf"\.{name.removeprefix('TRAWL_').lower()}\b")  # of a group of variables
            assert any(name in source or field.search(source) for source in sources), f"nobody reads {name}"


def test_the_fleet_fits_into_its_workers() -> None:
    assert SERVICES["beat"].environment["TRAWL_FLEET"] == "", "else it would hide what trawl.toml declares"
    fleet = parse_fleet(DEFAULT_FLEET)
    room = {_queues(service)[0]: int(service.option("--concurrency") or 0) for service in WORKERS.values()}
    assert sum(fleet.values()) <= room["crawlers"], "also when worker-list is lost"
    for spider, size in fleet.items():
        assert size <= room["crawlers"] + room.get(f"crawlers.{spider}", 0), f"{spider}: {size} crawlers desired"


# commands


def _queues(service: ComposeService) -> list[str]:
    return service.command[service.command.index("-Q") + 1].split(",")


def test_every_command_names_a_program_that_the_image_has() -> None:
    scripts = {"celery", "trawl"}
    for name, service in OURS.items():
        program, *rest = service.command
        if program == "python":
            assert rest[0] == "-m"
            assert importlib.util.find_spec(rest[1]) is not None, f"{name}: there is no module {rest[1]}"
        else:
            assert program in scripts, f"{name}: {program}"
            assert rest[:2] == ["-A", "tasks"]
            assert rest[2] in ("worker", "beat", "flower")


def test_each_service_whenever_it_is_declared_is_served_and_only_an_operator_limits_that() -> None:
    asked = {name: _queues(service) for name, service in WORKERS.items()}
    assert asked == {"worker-list": ["crawlers.forum_list"], "worker-detail": ["crawlers"], "worker-control": ["control"]}
    assert {"crawlers", "control"} < {queue.name for queue in celeryconfig.task_queues}
    limited = {"TRAWL_LIST_QUEUES": "crawlers.a,crawlers.b", "TRAWL_DETAIL_QUEUES": "crawlers.c", "TRAWL_DETAIL_REPLICAS": "3"}
    made = compose_file.services({**compose_file.example(), **limited})
    assert _queues(made["worker-list"]) == ["crawlers.a", "crawlers.b"]
    assert _queues(made["worker-detail"]) == ["crawlers.c"]
    assert {name: made[name].raw["deploy"]["replicas"] for name in ("worker-list", "worker-detail")} == {
        "worker-list": "1",
        "worker-detail": "3",
    }


def test_workers_and_beats_are_well_by_the_status_files_that_they_write() -> None:
    folder = compose_file.image_environment()["TRAWL_HEALTH_DIR"]
    for name, service in {**WORKERS, "beat": SERVICES["beat"]}.items():
        role = "beat" if name == "beat" else "worker"
        assert service.healthcheck == ("python", "-I", "-S", "/app/health.py", "--end", f"{folder}/{role}"), name
        assert (service.raw["init"], service.raw["restart"]) == (True, "unless-stopped"), "what ends a process starts it again"
    final = compose_file.image()
    assert ("COPY", "workers/node/health_check.py ./health.py") in final
    assert [rest for name, rest in final if name == "HEALTHCHECK" and f'"{folder}/"' in rest], "of each role: a command has any"


def test_a_service_with_a_port_is_asked_for_its_health_there() -> None:
    for name, service in OURS.items():
        if port := service.option("--port"):
            assert f"http://127.0.0.1:{port}/" in service.healthcheck[-1], name
            assert service.option("--host") == "0.0.0.0" or service.option("--address") == "0.0.0.0", name


def test_ports_are_published_on_this_machine_only_and_redis_not_at_all() -> None:
    published = {name: ports for name, service in SERVICES.items() if (ports := service.raw.get("ports"))}
    assert published.keys() == {"flower", "exporter"}
    for name, ports in published.items():
        port = SERVICES[name].option("--port")
        assert ports == [f"127.0.0.1:{port}:{port}"]


def test_redis_is_reached_by_the_fleet_alone_and_reaches_nobody() -> None:
    document = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    assert document["networks"] == {"redis": {"internal": True}}
    found = {name: service.raw["networks"] for name, service in SERVICES.items()}
    assert (found.pop("redis"), found.pop("forum")) == (["redis"], ["default"])
    assert {tuple(networks) for networks in found.values()} == {("default", "redis")}


def test_the_demos_site_is_where_the_forum_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(ROOT / "demo" / "sites"))
    monkeypatch.setenv("TRAWL_DEMO_URL", SERVICES["worker-list"].environment["TRAWL_DEMO_URL"])
    assert len(load_site("demo").forums) == int(SERVICES["forum"].option("--forums") or 0)
    assert str(load_site("demo").base_url) == f"http://forum:{SERVICES['forum'].option('--port')}/"
    assert SERVICES["forum"].raw["profiles"] == ["demo"]


# life and data


def test_a_worker_has_time_to_end_its_crawlers_before_it_is_killed() -> None:
    for service in WORKERS.values():
        grace_s = int(service.raw["stop_grace_period"].removesuffix("s"))
        assert grace_s == container_s(float(service.environment["TRAWL_SHUTDOWN_GRACE_S"]))


def test_every_service_comes_back_has_an_init_and_waits_for_redis() -> None:
    for name, service in SERVICES.items():
        assert service.raw["restart"] == "unless-stopped", name
        assert service.raw["init"] is True, name
        if name not in ("redis", "forum"):
            assert service.raw["depends_on"] == {"redis": {"condition": "service_healthy"}}, name


def test_a_beat_and_flower_have_as_much_time_and_no_container_may_take_the_whole_machine() -> None:
    for name, service in OURS.items():
        assert service.raw["stop_grace_period"] == WORKERS["worker-list"].raw["stop_grace_period"], name
        assert service.raw["read_only"] is True, name
        assert service.raw["tmpfs"] == ["/tmp"], name
        assert service.raw["mem_limit"], name
        assert str(service.raw["cpus"]) == ("0" if name in WORKERS else "1"), (
            f"{name}: what does more than one thing at a time is not slowed"
        )
        assert service.raw["pids_limit"], name


def test_the_limits_of_crawlers_follow_from_that_of_their_container() -> None:
    for name in ("worker-list", "worker-detail"):
        service = WORKERS[name]
        crawlers = int(service.environment["TRAWL_NODE_CRAWLERS"])
        assert str(crawlers) == service.option("--concurrency")
        memory = int(service.raw["mem_limit"].removesuffix("g")) << 30
        share = memory_share_mb(crawlers, memory)
        assert LEAST_SHARE_MB < share < 2048, name
        assert crawlers * share + WORKER_MB <= memory >> 20, name
    assert memory_share_mb(4, None) == 2048
    assert memory_share_mb(4, 512 << 20) == LEAST_SHARE_MB


def test_redis_keeps_its_data_and_forgets_nothing_when_it_is_full() -> None:
    service = SERVICES["redis"]
    assert (service.option("--appendonly"), service.option("--maxmemory-policy")) == ("yes", "noeviction")
    assert service.option("--requirepass") == compose_file.example()["TRAWL_REDIS_PASSWORD"]
    assert service.volumes == {"/data": "redis-data"}
    for name in OURS.keys() - {"forum"}:
        url = f"redis://:{service.option('--requirepass')}@redis:6379/0"
        assert SERVICES[name].environment["TRAWL_REDIS_URL"] == url, name


def test_one_service_alone_writes_the_database() -> None:
    writers = [name for name, service in SERVICES.items() if "TRAWL_DATABASE_URL" in service.environment]
    holders = [name for name, service in SERVICES.items() if "database" in service.volumes.values()]
    assert writers == holders == ["worker-control"]
    url = SERVICES["worker-control"].environment["TRAWL_DATABASE_URL"]
    assert url == "", "the file in the data folder"
    assert SERVICES["worker-control"].volumes[compose_file.image_environment()["TRAWL_DATA_DIR"]] == "database"


def test_every_volume_is_declared_or_a_folder_of_the_repository() -> None:
    declared = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["volumes"]
    used = {source for service in SERVICES.values() for source in service.volumes.values()} - {"/dev/null"}  # no trawl.toml
    assert {source for source in used if not source.startswith(".")} == declared.keys()
    for source in used - declared.keys():
        assert (ROOT / source).is_dir(), source
    assert compose_file.image_environment()["TRAWL_SITES_DIR"] in SERVICES["worker-list"].volumes


# the image


def _sent(path: str) -> bool:
    """Whether the build gets this file: .dockerignore excludes everything and lets some of it in again."""
    kept = [line[1:].rstrip("/") for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    return any(path == name or path.startswith(f"{name}/") for name in kept)


def test_the_build_gets_every_file_that_it_needs_and_none_that_is_secret() -> None:
    needed = [*PACKAGES, PROJECT["project"]["readme"], *PROJECT["project"]["license-files"], "scrapy.cfg", "sites"]
    needed += [f"{module}.py" for module in PROJECT["tool"]["setuptools"]["py-modules"]]
    for stage in compose_file.instructions():
        copied = [words for name, rest in stage if name == "COPY" and "--from" not in rest for words in rest.split()[:-1]]
        needed += [name for name in copied if name != "."]
    for path in needed:
        assert (ROOT / path).exists(), path
        assert _sent(path), f"{path} is kept out by .dockerignore"
    for path in (".env", ".git/config", "data/trawl.sqlite", ".venv/bin/python", "tests/conftest.py"):
        assert not _sent(path), path
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert next(line for line in lines if not line.startswith("#")) == "*"


def test_every_file_that_is_no_python_is_installed_with_its_package() -> None:
    data: dict[str, list[str]] = PROJECT["tool"]["setuptools"]["package-data"]
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*"):
            inside = path.relative_to(ROOT / package)
            if path.is_dir() or path.suffix in (".py", ".pyc"):
                continue
            found = any(_matches(inside, pattern) for pattern in data.get(package, []))
            assert found, f"{package}/{inside} is not in [tool.setuptools.package-data]: the image would lack it"


def _matches(path: Path, pattern: str) -> bool:
    """As setuptools does: `*` stays within a folder, `**/` is any number of folders."""
    *folders, name = pattern.split("/")
    if "**" in folders:
        fixed = folders[: folders.index("**")]
        return list(path.parts[: len(fixed)]) == fixed and fnmatch(path.name, name)
    return len(path.parts) == len(folders) + 1 and all(map(fnmatch, path.parts, [*folders, name]))


def test_the_image_installs_what_is_pinned_and_runs_without_root() -> None:
    build, base, final = compose_file.image("build"), compose_file.image("base"), compose_file.image()
    installs = [rest for name, rest in build if name == "RUN" and "pip install" in rest]
    assert any("-c constraints.txt" in rest for rest in installs)
    assert all("-c constraints.txt" in rest or "--no-deps" in rest for rest in installs)
    of_image = [words for rest in installs for words in re.findall(r"pip --python \S+ install ([^&]*)", rest)]
    assert of_image, "from outside: the image itself has no pip"
    assert all("--no-compile" in words for words in of_image), "only what is imported gets bytecode: packaging/bytecode.py"
    assert any("--require-hashes -r locked.txt" in words for words in of_image), "tests/unit/deploy says what is locked"
    users = [rest for name, rest in final if name == "USER"]
    assert users == ["10001:10001"], "a number: Kubernetes cannot tell from a name that it is not root"
    assert final.index(("USER", "10001:10001")) > max(place for place, (name, _) in enumerate(final) if name in ("RUN", "COPY"))
    assert base[0][1].startswith("python:3.")
    for one in (final, compose_file.image("exporter")):
        assert one[:2] == [("FROM", "scratch"), ("COPY", "--from=base / /")], "what was removed from the base is not in a layer"
        assert [rest for name, rest in one if name == "USER"] == users


def test_the_exporters_image_runs_and_checks_what_compose_does() -> None:
    made = dict(compose_file.image("exporter"))
    assert json.loads(made["CMD"]) == list(SERVICES["exporter"].command)
    assert json.loads(made["HEALTHCHECK"].partition("CMD ")[2]) == list(SERVICES["exporter"].healthcheck)


def test_no_file_names_a_registrys_host() -> None:
    for file in ("Dockerfile", "docker-compose.yml", "deploy/.env.example"):
        text = re.sub(r"https?://(127\.0\.0\.1|forum)\b", "", (ROOT / file).read_text())
        assert "https://" not in text
        assert "http://" not in text
        assert "index-url" not in text
    images = {service.raw["image"] for service in SERVICES.values()}
    assert images == {"redis:7-alpine", "trawl:latest"}


# what deploy/ holds for Prometheus


def test_prometheus_scrapes_services_at_the_ports_where_they_listen() -> None:
    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
    targets = [target for job in config["scrape_configs"] for group in job["static_configs"] for target in group["targets"]]
    assert targets
    for target in targets:
        name, _, port = target.partition(":")
        assert SERVICES[name].option("--port") == port
    for file in config["rule_files"]:
        assert (ROOT / "deploy/prometheus" / file).is_file()


def test_every_alert_says_what_is_wrong_and_names_are_used_once() -> None:
    rules = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())["groups"][0]["rules"]
    names = [rule["alert"] for rule in rules]
    assert len(names) == len(set(names))
    for rule in rules:
        assert rule["annotations"]["summary"]
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert "flower_worker_online" not in rule["expr"], "it stays 1 after a worker was killed"


def test_the_docs_list_every_service() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| `([\w-]+)", (ROOT / "docs/deployment.md").read_text(), re.MULTILINE)
    assert dict(rows) == {name: service.command[0] for name, service in SERVICES.items()}
