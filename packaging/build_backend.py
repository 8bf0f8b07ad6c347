"""Build backend of this checkout for pip: an editable install, or the wheel of the application `trawl-fleet`.

A checkout has the packages at its top (`workers`, `tasks`, ...), names that do not belong in the environment of others. For a
wheel they are copied below `trawl_fleet`, with a `pyproject.toml` made from the checkout's. `pip install .` has to work before
there is a release, so its wheel has the frontier and the reader, too. With the config setting `apart` (`make wheels`) they are
left out and required, as `trawl-frontier` and `trawl-reader` of the same version. Everything else is setuptools.
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
SHARED = ("redis_components", "forum_reader")
"""Their packages, which have these names in every environment."""
PACKAGES = ("workers", "fleet_operations", "forums", "tasks", "cli", "monitoring", "demo")
MODULES = ("celeryconfig.py", "flowerconfig.py")


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:  # noqa: ARG001
    """Build the wheel of `trawl-fleet`."""
    target = str(Path(wheel_directory).resolve())
    with _staged(config_settings):
        return build_meta.build_wheel(target)


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Any = None) -> str:
    """Write the metadata of the wheel."""
    target = str(Path(metadata_directory).resolve())
    with _staged(config_settings):
        return build_meta.prepare_metadata_for_build_wheel(target)


@contextmanager
def _staged(config_settings: Any) -> Iterator[None]:
    """Make the tree of the wheel the current folder."""
    root = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="trawl-wheel-") as name:
        stage = Path(name)
        fill(root, stage, apart=bool((config_settings or {}).get("apart")))
        os.chdir(stage)
        try:
            yield
        finally:
            os.chdir(root)


def fill(root: Path, stage: Path, *, apart: bool) -> None:
    """Copy the wheel's content from the checkout `root` into `stage`."""
    package = stage / NAME
    shutil.copytree(root / "packaging/fleet", package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in PACKAGES:
        shutil.copytree(root / name, package / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in () if apart else SHARED:
        shutil.copytree(root / name, stage / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in MODULES:
        shutil.copy(root / name, package / name)
    project = tomllib.loads((root / "pyproject.toml").read_text())
    for name in (project["project"]["readme"], *project["project"]["license-files"]):
        shutil.copy(root / name, stage / name)
    (stage / "pyproject.toml").write_text(pyproject(project, apart=apart))


def pyproject(project: dict[str, Any], *, apart: bool) -> str:
    """Return the wheel's `pyproject.toml`."""
    metadata: dict[str, Any] = project["project"]
    pins = [f"{name}=={metadata['version']}" for name in REQUIRED] if apart else []
    dependencies = [*pins, *metadata["dependencies"]]
    keep = ("name", "version", "description", "readme", "requires-python", "license", "license-files", "keywords", "classifiers")
    extras = {name: needs for name, needs in metadata["optional-dependencies"].items() if name != "dev"}
    data: dict[str, list[str]] = project["tool"]["setuptools"]["package-data"]
    files = [f"{name}/{pattern}" for name in PACKAGES for pattern in data.get(name, [])]
    shared = () if apart else SHARED
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
        f"include = {json.dumps([f'{name}*' for name in (NAME, *shared)])}",
        "[tool.setuptools.package-data]",
        f"{NAME} = {json.dumps(files)}",
        *(f"{name} = {json.dumps(data[name])}" for name in shared),
    ]
    return "\n".join(lines) + "\n"
