"""Runs the scripts of jobs of deploy/gitlab-ci.yml, as a runner does: in a clone, with GitLab's and the project's variables."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.pipeline_jobs import gitlab_job

from .engine import ROOT, Failed, run_script


@dataclass(kw_only=True)
class Runner:
    """A clone of the last commit, a home directory, and a `docker` that talks to the engine of the test."""

    folder: Path
    variables: dict[str, str]
    engines: dict[str, str]
    """Job -> address of the engine that takes the place of the one which the job names."""
    more: dict[str, list[str]] = field(default_factory=dict)
    """`docker WORD` -> words that this machine needs besides, such as what a build without a network of its own needs."""

    def clone(self) -> None:
        """A fresh clone, as a job has."""
        shutil.rmtree(self.folder / "clone", ignore_errors=True)
        subprocess.run(("git", "clone", "-q", "--shared", str(ROOT), str(self.folder / "clone")), check=True)

    def run(self, name: str, limit_s: float = 1200) -> str:
        """The job's script, under `sh -e`; what it wrote. Raises Failed."""
        own = {"HOME": str(self.folder), "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}
        script, environment = gitlab_job(name, {**self.variables, **own, "CI_PROJECT_DIR": str(self.folder / "clone")})
        (self.folder / "bin").mkdir(exist_ok=True)
        self._docker(name)
        done = run_script(script, self.folder / "clone", environment, limit_s)
        if done.returncode:
            raise Failed(f"job {name}: exit {done.returncode}: {(done.stdout + done.stderr)[-800:]}")
        return done.stdout + done.stderr

    def _docker(self, job: str) -> None:
        """`docker` for this job: another engine, and what this machine needs besides; without a network, no `--pull`."""
        cases = "\n".join(
            f'  {shlex.quote(word)}) shift; for one; do shift; [ "$one" = --pull ] || set -- "$@" "$one"; done; '
            f'set -- {word} {shlex.join(words)} "$@" ;;'
            for word, words in self.more.items()
        )
        real = shutil.which("docker")
        stack = self.more.get("stack deploy", [])
        program = self.folder / "bin/docker"
        program.write_text(
            f"""#!/bin/sh
echo "docker $* [$DOCKER_HOST]" >> {self.folder}/calls
export DOCKER_HOST={self.engines[job]}
if [ "$1 $2" = "stack deploy" ]; then set -- "$@" {shlex.join(stack)}; else case "$1" in
{cases}
esac; fi
exec {real} "$@"
"""
        )
        program.chmod(0o755)
