"""Jobs of deploy/gitlab-ci.yml and deploy/github-actions.yml as a shell runs them: a script and its environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from tests.support.compose_file import ROOT

GITLAB: dict[str, Any] = yaml.safe_load((ROOT / "deploy/gitlab-ci.yml").read_text())
GITHUB: dict[str, Any] = yaml.safe_load((ROOT / "deploy/github-actions.yml").read_text())
_GITLAB_VARIABLE = re.compile(r"\$(\w+)")
_GITHUB_EXPRESSION = re.compile(r"\$\{\{ *([\w.]+) *\}\}")


def gitlab_jobs() -> dict[str, dict[str, Any]]:
    """The jobs by name."""
    return {name: job for name, job in GITLAB.items() if name not in ("stages", "variables") and not name.startswith(".")}


def gitlab_job(name: str, given: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Script and environment of a job. `given` are GitLab's own variables and the project's; KeyError: one is missing."""
    job = gitlab_jobs()[name]
    environment = dict(given)
    for key, value in {**GITLAB["variables"], **job.get("variables", {})}.items():
        environment[key] = _GITLAB_VARIABLE.sub(lambda found: environment[found[1]], str(value))
    return "\n".join([*job.get("before_script", []), *job["script"]]), environment


def github_job(name: str, given: Mapping[str, str]) -> list[tuple[str, dict[str, str]]]:
    """Script and environment of each step that runs one; `given` has the values of expressions, such as `secrets.DEPLOY_HOST`."""
    job = GITHUB["jobs"][name]

    def filled(variables: Mapping[str, str]) -> dict[str, str]:
        return {key: _GITHUB_EXPRESSION.sub(lambda found: given[found[1]], str(value)) for key, value in variables.items()}

    common = filled(job.get("env", {}))
    return [(step["run"], {**common, **filled(step.get("env", {}))}) for step in job["steps"] if "run" in step]
