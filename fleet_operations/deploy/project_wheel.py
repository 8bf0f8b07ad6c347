"""Makes a wheel of a Scrapy project: by its own build where it has one, else of the package that `scrapy.cfg` names.

What `scrapy startproject` makes has no build. Its package is packed as it is, always into the same bytes, and the lines of
`requirements.txt` become what the wheel requires.
"""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from configparser import ConfigParser
from configparser import Error as ConfigParserError
from importlib.machinery import PathFinder
from pathlib import Path

from redis_components.errors import ConfigError
from workers.fleet.sizes import NotInstalled

BUILD_S = 300.0
_LEFT_OUT = ("__pycache__", ".git", ".mypy_cache", ".pytest_cache", ".ruff_cache")
_SOME_TIME = (2020, 1, 1, 0, 0, 0)  # the same content is the same file


NO_PIP = (
    "there is no pip here, which builds and installs versions. In a container roll an image with the project instead "
    '(docs/deployment.md, "Your own image"); elsewhere install it: python -m ensurepip, or uv pip install pip'
)


class BuildFailed(NotInstalled):
    """The project cannot be built or installed; the message has the last line of pip's output."""


def pip_command(python: str) -> list[str]:
    """Return the beginning of a pip command that works on this interpreter: the pip of this environment, else one on the PATH.
    Raises BuildFailed.
    """
    found = [sys.executable, "-m", "pip"] if PathFinder.find_spec("pip") else [shutil.which("pip") or ""]
    if not found[0]:
        raise BuildFailed(NO_PIP)
    return [*found, "--python", python, "--no-input", "--disable-pip-version-check"]


def settings_module(project: Path) -> str:
    """Return the module of the project's settings, as its `scrapy.cfg` names it. Raises ConfigError."""
    file, parser = project / "scrapy.cfg", ConfigParser()
    try:
        parser.read_string(file.read_text("utf-8"))
        return parser.get("settings", "default")
    except (OSError, UnicodeDecodeError, ConfigParserError) as error:
        message = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise ConfigError(f"{file}: names no settings module ({message}): is {project} the folder of a Scrapy project?") from None


def build(project: Path, into: Path, module: str) -> Path:
    """Build the wheel, in the folder `into`. Raises ConfigError for a folder that is not a project, BuildFailed."""
    if any((project / name).is_file() for name in ("pyproject.toml", "setup.py")):
        run_pip(["wheel", "--quiet", "--no-deps", "--wheel-dir", str(into), str(project)], f"{project} cannot be built")
        return next(into.glob("*.whl"))
    package = project / module.partition(".")[0]
    if not package.is_dir():
        raise ConfigError(f"{package} is not there: {project / 'scrapy.cfg'} names the settings {module}")
    return pack(package, _requirements(project / "requirements.txt"), into)


def run_pip(arguments: list[str], failed: str, *, python: str = "") -> None:
    """Run pip for this environment, or for another one where `python` is given. Raises BuildFailed."""
    command = [*pip_command(python or sys.executable), *arguments]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=BUILD_S, check=False)
    except subprocess.TimeoutExpired:
        raise BuildFailed(f"{failed}: pip takes longer than {BUILD_S:g} s") from None
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.lower().startswith("error")] or done.stderr.splitlines()
        raise BuildFailed(f"{failed}: {' '.join((errors or ['pip printed nothing'])[-1].split())[:500]}")


def _requirements(file: Path) -> list[str]:
    try:
        lines = [line.partition(" #")[0].strip() for line in file.read_text("utf-8").splitlines()]
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}") from None
    found = [line for line in lines if line and not line.startswith("#")]
    if wrong := next((line for line in found if line.startswith("-")), ""):
        raise ConfigError(f"{file}: {wrong!r:.100}: only requirements can go into a wheel; give the project a pyproject.toml")
    return found


def pack(package: Path, requires: list[str], into: Path) -> Path:
    """Make a wheel of a package as it is, in the folder `into`."""
    files = _files(package)
    version = f"0+{_digest_of(files, requires)[:12]}"
    name = re.sub(r"[^A-Za-z0-9]+", "_", package.name)
    info = f"{name}-{version}.dist-info"
    about = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}", *(f"Requires-Dist: {one}" for one in requires)]
    files[f"{info}/METADATA"] = ("\n".join(about) + "\n").encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: trawl\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    hashes = {path: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode() for path, data in files.items()}
    record = [f"{path},sha256={hashes[path]},{len(data)}" for path, data in files.items()] + [f"{info}/RECORD,,"]
    files[f"{info}/RECORD"] = ("\n".join(record) + "\n").encode()
    wheel = into / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            archive.writestr(zipfile.ZipInfo(path, _SOME_TIME), data)
    return wheel


def paths_of(package: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files of a package with their names in the wheel, in their order."""
    for path in sorted(package.rglob("*")):
        inside = path.relative_to(package.parent)
        if path.is_file() and not path.is_symlink() and not set(inside.parts) & set(_LEFT_OUT):
            yield inside.as_posix(), path


def content_of(package: Path) -> str:
    """Return a digest of a package's files."""
    return _digest_of(_files(package), [])


def _files(package: Path) -> dict[str, bytes]:
    return {name: path.read_bytes() for name, path in paths_of(package)}


def _digest_of(files: dict[str, bytes], requires: list[str]) -> str:
    whole = hashlib.sha256(repr(requires).encode())
    for path, data in files.items():
        whole.update(f"\0{path}\0{len(data)}\0".encode() + data)
    return whole.hexdigest()
