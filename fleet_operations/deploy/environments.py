"""A virtual environment for each version of a service, on each node that serves it.

An environment has the project's wheel and what that requires; what it does not have (Trawl, Scrapy) comes from the node's own
environment, which is searched after it. So two services may have two versions of a library on one node.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import secrets
import shutil
import stat
import sysconfig
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

import redis

from redis_components.embedded import data_dir
from redis_components.embedded.files import private_folder
from redis_components.errors import ConfigError
from redis_components.server.names import below, service_name
from workers.environment.variables import Fleet
from workers.fleet.sizes import as_declared
from workers.process.options import CrawlerOptions
from workers.state.services import Deployments, Version

from .project_wheel import BuildFailed, pip_command, run_pip

READY = "trawl-ready"
"""The last file that is written: an environment without it was not finished."""
MOST_WHEEL_BYTES = 1 << 30
_AT_ONCE = 1 << 20
_NAME = re.compile(r"[0-9a-f]{12}")
_WHEEL = re.compile(r"[A-Za-z0-9_.+!-]+\.whl")


def wheels_dir() -> Path:
    """Return the folder of wheels: TRAWL_WHEELS_DIR, the same folder for all nodes, else `wheels` in the data folder. Raises
    ConfigError.
    """
    named = Fleet.read().wheels_dir
    return named.expanduser().absolute() if named else data_dir() / "wheels"


def wheel_of(service: str, version: Version) -> Path:
    """Return the file of a version. Raises ConfigError for an invalid version."""
    if not _NAME.fullmatch(version.name) or not _WHEEL.fullmatch(version.file) or not version.digest.startswith(version.name):
        raise ConfigError(f"{service}: {version.name!r:.50} is not a version that trawl deploy has made")
    return below(wheels_dir(), service_name(service), version.name, version.file)


def digest_of(wheel: Path) -> str:
    """Return the SHA-256 in hexadecimal. Raises ConfigError where it cannot be read."""
    with _opened(wheel) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def keep(service: str, version: Version, wheel: Path) -> None:
    """Put the wheel of a version into the folder of wheels. Raises ConfigError."""
    place = wheel_of(service, version)
    try:
        private_folder(place.parent)
        part = place.with_name(f".{secrets.token_hex(8)}.part")  # a name that no link can wait under
        copied(wheel, part)
        part.replace(place)
    except OSError as error:
        raise ConfigError(f"{wheels_dir()}: {error.strerror}: wheels cannot be stored there") from None


def copied(wheel: Path, into: Path) -> None:
    """Copy a wheel from or into the shared folder, in which others may write. Raises ConfigError for what cannot be one, OSError,
    also where something is at the other place.
    """
    with _opened(wheel) as file, into.open("xb") as copy:
        left = os.fstat(file.fileno()).st_size
        while left > 0 and (part := file.read(min(left, _AT_ONCE))):
            copy.write(part)
            left -= len(part)


def _opened(wheel: Path) -> BufferedReader:
    """Open the wheel, a regular file only: a pipe would block, a device would never end."""
    try:
        descriptor = os.open(wheel, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # else a pipe without a writer blocks
    except OSError as error:
        raise ConfigError(
            f"{wheel}: {error.strerror}: every node needs the folder of wheels, a shared or copied one (TRAWL_WHEELS_DIR)"
        ) from None
    about = os.fstat(descriptor)
    if not stat.S_ISREG(about.st_mode) or about.st_size > MOST_WHEEL_BYTES:
        os.close(descriptor)
        raise ConfigError(f"{wheel} is not a file of at most {MOST_WHEEL_BYTES:,} bytes: deploy the version again")
    return open(descriptor, "rb")  # noqa: PTH123 - a descriptor


def python_of(service: str, version: Version) -> str:
    """Return the interpreter of a version that is installed on this machine; "" where it is not."""
    folder = _folder(service, version)
    return str(folder / "bin" / "python") if (folder / READY).is_file() else ""


def prepare(client: redis.Redis, service: str, version: Version) -> str:
    """Install a version on this machine, unless it is; its interpreter. Those that are not known any more are removed.

    Raises ConfigError for a wheel that is missing or not the one that was deployed, BuildFailed.
    """
    if python := python_of(service, version):
        return python
    folder = _folder(service, version)
    pip_command(str(folder))  # a node in a container has no pip, and no wheel either: the image is what matters
    try:
        private_folder(folder.parent)
    except OSError as error:
        raise BuildFailed(f"{folder.parent}: {error.strerror}: set TRAWL_DATA_DIR to a folder that this user may write") from None
    with _locked(folder.parent / f"{version.name}.lock"):
        if not python_of(service, version):
            _install(service, version, folder)
        known = {one.name for one in Deployments(client).of(service).versions}
        for other in folder.parent.iterdir():
            if other.is_dir() and other.name not in known and other != folder:
                shutil.rmtree(other, ignore_errors=True)
    return python_of(service, version)


def as_deployed(client: redis.Redis, options: CrawlerOptions, install: bool) -> CrawlerOptions:
    """Return the options of a crawler of a service's or job's present version. `install`: install it if this machine lacks it.

    Raises ConfigError where that version is not here, and is not to be installed now; else as `prepare` and `as_declared`.
    """

    def version(service: str) -> tuple[str, str]:
        now = Deployments(client).of(service).now
        if now is None:
            return "", ""
        python = prepare(client, service, now) if install else python_of(service, now)
        if not python:
            raise ConfigError(f"version {now.name} of {service} is not installed on this machine yet")
        return python, now.project

    return as_declared(client, options, version)


def _folder(service: str, version: Version) -> Path:
    wheel_of(service, version)  # checked
    return below(data_dir(), "environments", service_name(service), version.name)


def _install(service: str, version: Version, folder: Path) -> None:
    shared = wheel_of(service, version)
    _opened(shared).close()  # raises, with the fix, where it is missing
    shutil.rmtree(folder, ignore_errors=True)  # the remains of a killed installation
    try:
        # A private copy: a user who may write to the shared folder could change the file after the check.
        private_folder(folder)
        wheel = below(folder, shared.name)
        copied(shared, wheel)
        if digest_of(wheel) != version.digest:
            shutil.rmtree(folder, ignore_errors=True)
            raise ConfigError(f"{shared} is not what was deployed as version {version.name} of {service}: deploy it again")
        venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
        packages = next(folder.glob("lib/python*/site-packages"))
        paths = dict.fromkeys((sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]))
        # `addsitedir`, since packages there may be editable. Names in it come after the environment's own.
        (packages / "zz_trawl_node.pth").write_text("".join(f"import site; site.addsitedir({path!r})\n" for path in paths))
        run_pip(["install", "--quiet", str(wheel)], f"{service} {version.name}", python=str(folder / "bin" / "python"))
        wheel.unlink()
        (folder / READY).touch()
    except OSError as error:
        raise BuildFailed(f"{folder}: {error.strerror or error}") from None


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock a path: one process of this machine at a time."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
