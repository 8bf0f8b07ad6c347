"""Each job's script is executed, as a runner does it, with commands in the place of docker, trivy and make that tell how they
were called. `python -m tests.containers.swarm` executes them with a real engine, registry and Swarm.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from tests.support.compose_file import ROOT
from tests.support.pipeline_jobs import GITHUB, github_job, gitlab_job, gitlab_jobs

pytestmark = pytest.mark.processes
KEY = "0f" * 32
IMAGE = "registry.example/group/trawl:abc1234"
TELL = """#!/bin/sh
line="${0##*/}"
for one; do line="$line$(printf '\\t%s' "$one")"; done
printf '%s\\tDOCKER_HOST=%s TRAWL_SITES_DIR=%s TRAWL_IMAGE=%s TRAWL_TAG=%s KEY=%s\\n' \
  "$line" "$DOCKER_HOST" "$TRAWL_SITES_DIR" "$TRAWL_IMAGE" "$TRAWL_TAG" "$TRAWL_SIGNING_KEY_NAME" >> "$CALLS"
case "$*" in
  *"$FAILS") exit 1 ;;
  *--password-stdin*) cat >> "$CALLS.stdin" ;;
  *" save "*|save\\ *) : > image/trawl.tar ;;
  "service inspect "*) echo "$TRAWL_IMAGE:$TRAWL_TAG@sha256:0" ;;
esac
"""


class Job:
    """A folder with deploy/, a home, and commands that tell."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.fails = "a command that ends with these words"
        shutil.copytree(ROOT / "deploy", folder / "tree/deploy")
        (folder / "tree/deploy/signing.key").unlink(missing_ok=True)
        (folder / "bin").mkdir()
        for name in ("docker", "trivy", "make"):
            (folder / "bin" / name).write_text(TELL)
            (folder / "bin" / name).chmod(0o755)
        for name in ("signing", "ssh", "hosts"):
            (folder / name).write_text(f"{KEY}\n")

    def run(self, script: str, environment: Mapping[str, str], shell: str = "sh") -> list[list[str]]:
        """The commands that it called, with their words; every variable that it uses has to be set."""
        calls = self.folder / "calls"
        calls.write_text("")
        own = {
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "CALLS": str(calls),
            "FAILS": self.fails,
        }
        done = subprocess.run(
            [shell, "-euc", script],
            cwd=self.folder / "tree",
            env={**environment, **own},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return [line.split("\t") for line in calls.read_text().splitlines()]

    @property
    def typed(self) -> str:
        """What the commands were given on their standard input."""
        return (self.folder / "calls.stdin").read_text()


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


@pytest.fixture
def gitlab(job: Job) -> dict[str, str]:
    return {
        "CI_PROJECT_DIR": str(job.folder / "tree"),
        "CI_COMMIT_SHORT_SHA": "abc1234",
        "CI_REGISTRY": "registry.example",
        "CI_REGISTRY_IMAGE": "registry.example/group/trawl",
        "CI_REGISTRY_USER": "robot",
        "CI_REGISTRY_PASSWORD": "of-the-registry",
        "TRAWL_REDIS_PASSWORD": "r",
        "FLOWER_BASIC_AUTH": "a:b",
        "TRAWL_SIGNING_KEY": str(job.folder / "signing"),
        "DEPLOY_HOST": "me@manager",
        "DEPLOY_SSH_KEY": str(job.folder / "ssh"),
        "DEPLOY_KNOWN_HOSTS": str(job.folder / "hosts"),
        "DEPLOY_SITES_DIR": "/srv/sites",
    }


def test_gitlabs_jobs_build_scan_and_push_one_image(job: Job, gitlab: dict[str, str]) -> None:
    seen = {name: job.run(*gitlab_job(name, gitlab)) for name in ("lint", "test", "build", "scan", "push")}
    assert [call[:2] for call in seen["lint"]] == [["make", "install"], ["make", "lint"]]
    assert [call[:2] for call in seen["test"]] == [["make", "install"], ["make", "test"]]
    build, version, save = seen["build"]
    assert build[1:5] == ["build", "--pull", "-t", IMAGE]
    assert version[1:7] == ["run", "--rm", "--init", IMAGE, "trawl", "--version"]
    assert save[1:5] == ["save", IMAGE, "-o", "image/trawl.tar"]
    assert "image/trawl.tar" in seen["scan"][0]
    assert [call[1] for call in seen["push"]] == ["load", "login", "push"]
    assert seen["push"][2][2] == IMAGE
    assert job.typed == "of-the-registry\n"
    assert all("of-the-registry" not in word for call in seen["push"] for word in call), "a command line can be read by others"


def test_gitlabs_deploy_brings_the_signing_key_and_asks_the_manager(job: Job, gitlab: dict[str, str]) -> None:
    _, deploy, *asked = job.run(*gitlab_job("deploy", gitlab))
    assert deploy[1:7] == ["stack", "deploy", "--with-registry-auth", "--detach=false", "-c", "deploy/stack.yml"]
    assert "DOCKER_HOST=ssh://me@manager TRAWL_SITES_DIR=/srv/sites TRAWL_IMAGE=registry.example/group/trawl" in deploy[-1]
    for secret in yaml.safe_load((ROOT / "deploy/stack.yml").read_text())["secrets"].values():
        assert (job.folder / "tree/deploy" / secret["file"]).read_text() == f"{KEY}\n", "without it the stack is refused"
    assert (job.folder / ".ssh/id_ed25519").stat().st_mode & 0o077 == 0
    assert sorted(call[5] for call in asked) == sorted(rolled_back()), "whether Swarm took the image back"
    name = deploy[-1].rpartition("KEY=")[2]
    assert name.startswith("trawl_signing_key_")
    Path(gitlab["TRAWL_SIGNING_KEY"]).write_text("other\n")
    assert not job.run(*gitlab_job("deploy", gitlab))[1][-1].endswith(name), "a secret of Swarm cannot be changed"
    job.fails = "trawl_flower"
    with pytest.raises(AssertionError):
        job.run(*gitlab_job("deploy", gitlab))


def rolled_back() -> list[str]:
    """Services of the stack that have the fleet's image."""
    services = yaml.safe_load((ROOT / "deploy/stack.yml").read_text())["services"]
    return [f"trawl_{name}" for name, service in services.items() if "TRAWL_IMAGE" in service["image"]]


def test_gitlabs_rollback_rolls_each_service_of_the_image_back(job: Job, gitlab: dict[str, str]) -> None:
    calls = job.run(*gitlab_job("rollback", gitlab))
    assert sorted(call[3] for call in calls) == sorted(rolled_back())
    assert {tuple(call[1:3]) for call in calls} == {("service", "rollback")}
    job.fails = "trawl_beat"
    with pytest.raises(AssertionError):
        job.run(*gitlab_job("rollback", gitlab))
    assert gitlab_jobs().keys() == {"lint", "test", "build", "scan", "push", "deploy", "rollback"}, "each is executed here"


def test_githubs_jobs_build_push_and_deploy_one_image(job: Job) -> None:
    given = {f"secrets.{name}": f"of-{name}" for name in ("DEPLOY_HOST", "DEPLOY_SSH_KEY", "DEPLOY_KNOWN_HOSTS", "GITHUB_TOKEN")}
    given |= {f"secrets.{name}": f"of-{name}" for name in ("DEPLOY_SITES_DIR", "TRAWL_REDIS_PASSWORD", "FLOWER_BASIC_AUTH")}
    given |= {"secrets.TRAWL_SIGNING_KEY": KEY, "vars.REGISTRY": "registry.example", "github.repository": "group/trawl"}
    given["github.sha"] = "abc1234"
    seen = {
        name: [call for script, env in github_job(name, given) for call in job.run(script, {"GITHUB_ACTOR": "me", **env}, "bash")]
        for name in GITHUB["jobs"]
    }
    assert [call[:2] for call in seen["test"]] == [["make", "install"], ["make", "test"]]
    assert [call[1] for call in seen["image"]] == ["build", "run", "run", "login", "push"]
    assert {IMAGE} == {seen["image"][0][4], seen["image"][1][4], seen["image"][4][2]}
    assert job.typed == "of-GITHUB_TOKEN\n"
    deploy, *asked = seen["deploy"]
    assert sorted(call[5] for call in asked) == sorted(rolled_back())
    assert deploy[1:3] == ["stack", "deploy"]
    assert "DOCKER_HOST=ssh://of-DEPLOY_HOST TRAWL_SITES_DIR=of-DEPLOY_SITES_DIR" in deploy[-1]
    assert (job.folder / "tree/deploy/signing.key").read_text() == f"{KEY}\n"
    assert sorted(call[3] for call in seen["rollback"]) == sorted(rolled_back())
    assert seen.keys() == {"test", "image", "deploy", "rollback"}, "each is executed here"
