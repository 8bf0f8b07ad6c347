"""Build backend of this checkout for pip: an editable install, or the wheel of the application `trawl-fleet`.

A checkout has the packages at its top (`workers`, `tasks`, ...), names that do not belong in the environment of others. For a
wheel they are copied below `trawl_fleet`, with a `pyproject.toml` made from the checkout's: the frontier and the reader are left
out and required, as `trawl-frontier` and `trawl-reader` of the same version. Everything else is setuptools.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (  # noqa: F401 - hooks that are setuptools' own
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
)

NAME = "trawl_fleet"
REQUIRED = ("trawl-frontier", "trawl-reader")
"""Distributions of other folders of the checkout."""
PACKAGES = ("workers", "forums", "tasks", "cli", "monitoring", "demo")
MODULES = ("celeryconfig.py", "flowerconfig.py")


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:  # noqa: ARG001
    """Build the wheel of `trawl-fleet`."""
    target = str(Path(wheel_directory).resolve())
    with _staged():
        return build_meta.build_wheel(target, config_settings)


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Any = None) -> str:
    """Write the metadata of the wheel."""
    target = str(Path(metadata_directory).resolve())
    with _staged():
        return build_meta.prepare_metadata_for_build_wheel(target, config_settings)


@contextmanager
def _staged() -> Iterator[None]:
    """Make the tree of the wheel the current folder."""
    root = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="trawl-wheel-") as name:
        stage = Path(name)
        fill(root, stage)
        os.chdir(stage)
        try:
            yield
        finally:
            os.chdir(root)


def fill(root: Path, stage: Path) -> None:
    """Copy the wheel's content from the checkout `root` into `stage`."""
    package = stage / NAME
    shutil.copytree(root / "packaging/fleet", package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in PACKAGES:
        shutil.copytree(root / name, package / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in MODULES:
        shutil.copy(root / name, package / name)
    project = tomllib.loads((root / "pyproject.toml").read_text())
    for name in (project["project"]["readme"], *project["project"]["license-files"]):
        shutil.copy(root / name, stage / name)
    (stage / "pyproject.toml").write_text(pyproject(project))


def pyproject(project: dict[str, Any]) -> str:
    """Return the wheel's `pyproject.toml`."""
    metadata: dict[str, Any] = project["project"]
    dependencies = [*(f"{name}=={metadata['version']}" for name in REQUIRED), *metadata["dependencies"]]
    keep = ("name", "version", "description", "readme", "requires-python", "license", "license-files", "keywords", "classifiers")
    extras = {name: needs for name, needs in metadata["optional-dependencies"].items() if name != "dev"}
    data: dict[str, list[str]] = project["tool"]["setuptools"]["package-data"]
    files = [f"{name}/{pattern}" for name in PACKAGES for pattern in data.get(name, [])]
    lines = [
        "[build-system]",
        f"requires = {json.dumps(project['build-system']['requires'])}",
        'build-backend = "setuptools.build_meta"',
        "[project]",
        *(f"{key} = {json.dumps(metadata[key])}" for key in keep),
        f"dependencies = {json.dumps(dependencies)}",
        "[project.optional-dependencies]",
        *(f"{name} = {json.dumps(needs)}" for name, needs in extras.items()),
        "[project.scripts]",
        f'trawl = "{NAME}:main"',
        "[tool.setuptools.packages.find]",
        f'include = ["{NAME}*"]',
        "[tool.setuptools.package-data]",
        f"{NAME} = {json.dumps(files)}",
    ]
    return "\n".join(lines) + "\n"
