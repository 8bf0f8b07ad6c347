"""Prepares and tests a release: `python packaging/release.py VERSION [--tag] [--build WORDS]` (`make release VERSION=0.2.0`).

In a copy of the last commit the version is written to all its places and the changelog gets its date; the wheels are built
there, installed into empty environments, and their first commands run; the image is built if a Docker engine answers.
dist/VERSION then holds the files to publish. Without `--tag` nothing changes here; with it the commit and an annotated tag are
made. Nothing is sent anywhere; packaging/README.md describes the publication.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import wheels

ROOT = Path(__file__).parents[1]
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:(a|b|rc)(\d+))?", re.ASCII)
PLACES = {
    "pyproject.toml": re.compile(r'^(version = ")([^"]+)(")$', re.MULTILINE),
    "packaging/frontier/pyproject.toml": re.compile(r'^(version = ")([^"]+)(")$', re.MULTILINE),
    "packaging/reader/pyproject.toml": re.compile(r'^(version = ")([^"]+)(")$', re.MULTILINE),
    "redis_components/__init__.py": re.compile(r'^(__version__ = ")([^"]+)(")$', re.MULTILINE),
    "forum_reader/__init__.py": re.compile(r'^(__version__ = ")([^"]+)(")$', re.MULTILINE),
    "Dockerfile": re.compile(r"^(ARG VERSION=)(\S+)()$", re.MULTILINE),
}
"""Files that hold the version."""
FIRST_COMMANDS = {
    "trawl_frontier": (["python", "-c", "import redis_components; print(redis_components.__version__)"],),
    "trawl_reader": (
        ["python", "-c", "import forum_reader; print(forum_reader.__version__)"],
        ["python", "-c", "from forum_reader import read_page, draft_site; read_page('<p>x</p>', 'https://forum.example/')"],
    ),
    "trawl_fleet": (["trawl", "--version"], ["trawl", "--help"], ["trawl", "sites", "list"]),
}
"""Commands to run in an environment with one wheel and its requirements; the first one prints the version."""


IMAGES = (
    ("trawl", (), ("trawl", "--version")),
    ("trawl-exporter", ("--target", "exporter"), FIRST_COMMANDS["trawl_frontier"][0]),
)
"""Name, options of `docker build`, and the command that prints the version."""


class NotReleasable(Exception):
    """The reason against a release, in one line."""


def order(version: str) -> tuple[int, int, int, str, int]:
    """Return the sort key of a version. Raises NotReleasable."""
    if not (found := _VERSION.fullmatch(version)):
        raise NotReleasable(f"{version!r} is not a version: write it as 0.2.0, or 0.2.0rc1")
    kind = {"a": "a", "b": "b", "rc": "c"}.get(found[4] or "", "z")
    return int(found[1]), int(found[2]), int(found[3]), kind, int(found[5] or 0)


def check(root: Path, version: str) -> None:
    """Raise NotReleasable if the tree cannot be released."""
    order(version)
    if changed := _git(root, "status", "--porcelain"):
        first = changed.splitlines()[0].split(maxsplit=1)[1]
        raise NotReleasable(f"the tree has changes that are not committed, such as {first}: commit them first")
    tags = [tag.removeprefix("v") for tag in _git(root, "tag", "--list", "v*").split()]
    released = sorted((tag for tag in tags if _VERSION.fullmatch(tag)), key=order)
    if released and order(version) <= order(released[-1]):
        raise NotReleasable(f"{version} is not after {released[-1]}, which is released")
    notes(root, version)


def notes(root: Path, version: str) -> str:
    """Return the changelog's section of this version. Raises NotReleasable if it is missing, empty, or has a date already."""
    text = (root / "CHANGELOG.md").read_text("utf-8")
    found = re.search(rf"^## {re.escape(version)} \(([^)]*)\)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None or not found[2].strip():
        raise NotReleasable(f"CHANGELOG.md has no section `## {version} (unreleased)` with text: write what users get")
    if found[1] != "unreleased":
        raise NotReleasable(f"CHANGELOG.md dates {version} already: released on {found[1]}")
    return found[2].strip() + "\n"


def write_version(root: Path, version: str, day: str) -> None:
    """Write the version to its places, and the day to the changelog. Raises NotReleasable."""
    for name, pattern in PLACES.items():
        text, count = pattern.subn(rf"\g<1>{version}\g<3>", (root / name).read_text("utf-8"))
        if count != 1:
            raise NotReleasable(f"{name} has the version {count} times, not once: mend packaging/release.py")
        (root / name).write_text(text, "utf-8")
    changelog = root / "CHANGELOG.md"
    changelog.write_text(changelog.read_text("utf-8").replace(f"## {version} (unreleased)", f"## {version} ({day})", 1), "utf-8")


def prepare(root: Path, copy: Path, version: str) -> str:
    """Clone the last commit, and commit the release on top of it; return the commit's hash."""
    _git(root, "clone", "--quiet", "--shared", str(root), str(copy))
    write_version(copy, version, datetime.now(UTC).date().isoformat())
    for name in ("user.name", "user.email"):
        _git(copy, "config", name, _git(root, "config", name) or f"release@{name}")
    if _git(copy, "status", "--porcelain"):
        _git(copy, "commit", "--quiet", "--all", "--message", f"release: {version}")
    return _git(copy, "rev-parse", "HEAD")


def try_wheels(built: list[Path], root: Path, version: str) -> None:
    """Install each wheel into an empty environment, and run its first commands. Raises NotReleasable."""
    for name, commands in FIRST_COMMANDS.items():
        (wheel,) = (one for one in built if one.name.startswith(f"{name}-"))
        with tempfile.TemporaryDirectory(prefix="trawl-release-") as folder:
            environment = Path(folder) / "environment"
            _run([sys.executable, "-m", "venv", str(environment)], folder)
            find = ["--find-links", str(wheel.parent), "--constraint", str(root / "constraints.txt")]
            _run([str(environment / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", *find, str(wheel)], folder)
            for at, (program, *arguments) in enumerate(commands):
                shown = _run([str(environment / "bin" / program), *arguments], folder)
                if at == 0 and version not in shown.split():
                    raise NotReleasable(
                        f"{program} {' '.join(arguments)} of {wheel.name} prints {shown.strip()!r}, not {version}"
                    )


def try_image(copy: Path, version: str, revision: str, words: list[str]) -> str | None:
    """Build both images, with the options `words` of `docker build`, and check their versions; return their names, None
    without an engine.
    """
    if shutil.which("docker") is None or subprocess.run(["docker", "info"], capture_output=True, check=False).returncode:
        return None
    options = [*words, "--build-arg", f"VERSION={version}", "--build-arg", f"REVISION={revision}"]
    for name, target, command in IMAGES:
        _run(["docker", "build", "--quiet", *options, *target, "--tag", f"{name}:{version}", "."], copy)
        output = _run(["docker", "run", "--rm", f"{name}:{version}", *command], copy)
        if version not in output.split():
            raise NotReleasable(f"the image {name} prints {output.strip()!r}, not {version}")
    return " and ".join(f"{name}:{version}" for name, _, _ in IMAGES)


def release(root: Path, version: str, *, tag: bool, build: str = "") -> Path:
    """Prepare and test a release; return its folder. Raises NotReleasable."""
    check(root, version)
    folder = root / "dist" / version
    with tempfile.TemporaryDirectory(prefix="trawl-release-") as name:
        copy = Path(name) / "copy"
        revision = prepare(root, copy, version)
        shutil.rmtree(folder, ignore_errors=True)
        built = wheels.build(copy, folder)
        _report(f"built {', '.join(one.name for one in built)}")
        try_wheels(built, copy, version)
        _report("installed each into an empty environment and ran its first commands")
        image = try_image(copy, version, revision, shlex.split(build))
        _report(f"built {image}" if image else "no Docker engine answers: build the images where one does")
        (folder / "NOTES.md").write_text(notes(root, version), "utf-8")
        sums = "".join(f"{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.name}\n" for one in built)
        (folder / "SHA256SUMS").write_text(sums, "utf-8")
        if tag:
            _git(root, "pull", "--quiet", "--ff-only", str(copy), "HEAD")
            _git(root, "tag", "--annotate", f"v{version}", "--message", f"Trawl {version}")
    return folder


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode and arguments[0] != "config":
        raise NotReleasable(f"git {' '.join(arguments)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout.strip()


def _run(command: list[str], folder: str | Path) -> str:
    """Return the output of a program, run without this project's settings. Raises NotReleasable if it fails."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRAWL_", "PYTHONPATH"))}
    done = subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise NotReleasable(f"{' '.join(command)}: {last[0]}")
    return done.stdout


def _report(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="packaging/release.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("version", help="as 0.2.0, or 0.2.0rc1")
    parser.add_argument("--tag", action="store_true", help="make the commit and the tag, too; nothing is pushed")
    parser.add_argument(
        "--build", default="", metavar="WORDS", help="for `docker build`, such as --build-arg PYTHON_IMAGE=...@sha256:..."
    )
    given = parser.parse_args()
    try:
        folder = release(ROOT, given.version, tag=given.tag, build=given.build)
    except NotReleasable as reason:
        sys.stderr.write(f"release: {reason}\n")
        return 1
    _report(f"{folder.relative_to(ROOT)} holds the files to publish: see packaging/README.md")
    if given.tag:
        _report(f"v{given.version} is tagged here: git push --follow-tags")
    else:
        _report(f"nothing was changed: make release VERSION={given.version} TAG=1 makes the commit and the tag")
    return 0


if __name__ == "__main__":
    sys.exit(main())
