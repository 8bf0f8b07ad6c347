"""The folder of a project that crawlers are launched from, kept as a version until the first deploy: a rollback of that leads to
the code that ran, also where the folder was edited since.
"""

from __future__ import annotations

import logging
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from dataclasses import replace
from importlib.machinery import PathFinder
from pathlib import Path

import redis

from redis_components.embedded import project_dir
from redis_components.errors import TrawlError
from redis_components.server.untrusted_values import server_time
from workers.environment.declaration import settings_module
from workers.process.options import CrawlerOptions
from workers.state.services import Deployment, Deployments, Version

from .environments import digest_of, keep, wheel_of
from .project_wheel import content_of, pack, paths_of, pip_command

FOLDER = "its folder"
"""Stands for the user who deployed it."""
MOST_FILES = 20_000
MOST_BYTES = 32 << 20
_KEPT = 2  # a crawler that was started again after an edit runs what is deployed next: the content before is wanted then
_packed: dict[tuple[str, Path], tuple[object, Version]] = {}
logger = logging.getLogger(__name__)


def keep_folder(client: redis.Redis, options: CrawlerOptions) -> Callable[[], object] | None:
    """Keep the package that a crawler is about to be launched from, as a wheel; return the function that notes it in Redis.

    None for a deployed version, a job, an installed package, one beyond the bounds, and where no pip could install it again.
    """
    if options.python or options.job_of:
        return None
    module = options.project or settings_module()
    try:
        package = _package_of(module)
        version = _version_of(options.spider, package, module) if package else None
    except (OSError, TrawlError) as error:
        logger.info("%s: its folder is not kept for a rollback: %s", options.spider, error)
        return None
    return (lambda: _note(client, options.spider, version)) if version else None


def _package_of(module: str) -> Path | None:
    """Return the folder of the package that has the settings; None where it is installed, or Trawl's own."""
    top = module.partition(".")[0]
    spec = PathFinder.find_spec(top, [*sys.path, str(project_dir())])
    if spec is None or spec.origin is None or not spec.submodule_search_locations or top == "workers":
        return None
    package = Path(spec.origin).parent
    installed = {Path(sysconfig.get_paths()[key]) for key in ("purelib", "platlib")}
    return None if package.parent in installed else package


def _version_of(service: str, package: Path, module: str) -> Version | None:
    looks = []
    for name, path in paths_of(package):
        about = path.stat()
        looks.append((name, about.st_size, about.st_mtime_ns))
    if len(looks) > MOST_FILES or sum(size for _, size, _ in looks) > MOST_BYTES:
        return None
    known = _packed.get((service, package))
    if known and known[0] == looks:
        return known[1]
    pip_command(sys.executable)
    with tempfile.TemporaryDirectory() as made:
        wheel = pack(package, [], Path(made))  # what it requires is there: it runs
        digest = digest_of(wheel)
        content = content_of(package)
        version = Version(name=digest[:12], file=wheel.name, digest=digest, project=module, by=FOLDER, content=content)
        keep(service, version, wheel)
    _packed[service, package] = looks, version
    return version


def _note(client: redis.Redis, service: str, version: Version) -> None:
    """Record it as what the crawlers run, and forget those that are older than the one before."""
    dropped: list[Version] = []

    def noted(now: Deployment) -> Deployment:
        ran = (*(one for one in now.ran if one != version.name), version.name)[-_KEPT:]
        dropped[:] = [one for one in now.versions if one.by == FOLDER and one.name not in {*ran, now.previous}]
        kept = [one for one in now.versions if one not in dropped]
        return replace(now, ran=ran, versions=tuple(kept) if now.of(version.name) else (*kept, dated))

    if (known := Deployments(client).of(service)).current or known.ran[-1:] == (version.name,):
        return
    dated = replace(version, at=server_time(client))
    Deployments(client).edit(service, noted)
    for one in dropped:
        shutil.rmtree(wheel_of(service, one).parent, ignore_errors=True)
