"""Installed packages, their hashes and licences: `python packaging/supply_chain.py lock|sbom|licences|audit`.

    lock      write deploy/locked.txt: every package of the image and of `make install`, with the hashes of all its files
    sbom      write dist/sbom.json: the packages of this environment, as CycloneDX
    licences  refuse a package whose licence is not among those that the project accepts
    audit     ask an advisory database about every locked package (needs a network that reaches one)

`lock`, `sbom` and `audit` use third-party tools in a separate environment, .venv-tools.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterable
from importlib.metadata import Distribution, distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "deploy" / "locked.txt"
TOOLS = {"uv": "uv==0.13.9", "cyclonedx-py": "cyclonedx-bom==7.5.0", "pip-audit": "pip-audit==2.10.1"}
EXTRAS = ("postgres", "mysql")
"""Extras of the image and of `make install`."""

ACCEPTED = re.compile(
    r"MIT(-0| License)?|BSD( License|-[23]-Clause)?|3-Clause BSD License|Apache(-2\.0| Software License)"
    r"|ISC( License \(ISCL\))?|PSF-2\.0|0BSD"
    r"|Python Software Foundation License|Mozilla Public License 2\.0 \(MPL 2\.0\)|MPL-2\.0|ZPL-2\.1|CNRI-Python|Unlicense"
    r"|LGPL-3\.0-only"  # a library that is used as it is: psycopg
)
_NO_LICENCE = frozenset({"DFSG approved", "OSI Approved"})  # classifiers that name none
HEADER = """\
# Every package that the image and `make install` install, with the hashes of all its files: written by `make lock` from
# pyproject.toml and constraints.txt. Install with: pip install --require-hashes -r deploy/locked.txt
"""


def licences_of(package: Distribution) -> list[str]:
    """Return the names of its licences: its SPDX expression, else its classifiers, else its own text."""
    fields = package.metadata
    if expression := fields.get("License-Expression"):
        return [name for name in re.split(r"\s+(?:AND|OR|WITH)\s+|[()]", expression) if name]
    classifiers = [one.split(" :: ")[-1] for one in fields.get_all("Classifier") or [] if one.startswith("License ::")]
    return [one for one in classifiers if one not in _NO_LICENCE] or [(fields.get("License") or "none is named").splitlines()[0]]


def refused(packages: Iterable[Distribution]) -> list[str]:
    """Return a line for each package with a licence that is not accepted."""
    found = {one.metadata["Name"]: licences_of(one) for one in packages}
    return [
        f"{name}: {' and '.join(licences)}"
        for name, licences in sorted(found.items())
        if not all(ACCEPTED.fullmatch(one) for one in licences)
    ]


def installed() -> Iterable[Distribution]:
    """Return the packages of this environment, without those in setuptools' own folder, which it adds to `sys.path`."""
    return distributions(path=[sysconfig.get_path("purelib")])


def licences() -> int:
    if wrong := refused(installed()):
        sys.stderr.write("\n".join(["not accepted (packaging/supply_chain.py has the list):", *wrong, ""]))
        return 1
    return 0


def lock() -> int:
    extras = [part for extra in EXTRAS for part in ("--extra", extra)]
    command = [_tool("uv"), "pip", "compile", "pyproject.toml", *extras, "-c", "constraints.txt", "--generate-hashes"]
    quiet = ["--universal", "--python-version", "3.11", "--no-header", "--no-annotate", "--no-emit-index-url", "--quiet"]
    done = subprocess.run([*command, *quiet], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.stderr.write(done.stderr)
        return 1
    LOCK.write_text(HEADER + done.stdout)
    return 0


def sbom() -> int:
    target = ROOT / "dist" / "sbom.json"
    target.parent.mkdir(exist_ok=True)
    command = [_tool("cyclonedx-py"), "environment", "--output-reproducible", "--pyproject", "pyproject.toml"]
    return subprocess.run([*command, "-o", str(target), sys.prefix], cwd=ROOT, check=False).returncode


def audit() -> int:
    command = [
        _tool("pip-audit"),
        "--require-hashes",
        "--disable-pip",
        "--progress-spinner",
        "off",
        "-f",
        "json",
        "-r",
        str(LOCK),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except ValueError:
        packages = []
    # pip-audit calls it "no known vulnerabilities" when it could ask about none of them.
    known = [one for one in packages if "skip_reason" not in one]
    if not known:
        sys.stderr.write("no advisory database can be reached from here: run `make audit` where the network has one\n")
        return 2
    lines = [f"{one['name']} {one['version']}: {each['id']}" for one in known for each in one["vulns"]]
    lines += [f"{one['name']}: {one['skip_reason']}" for one in packages if "skip_reason" in one]
    sys.stdout.write("\n".join([*lines, f"{len(known)} packages were asked about, {len(lines)} need a look", ""]))
    return 1 if lines else 0


def _tool(name: str) -> str:
    """Return the path of a tool, which is installed at its first use."""
    folder = ROOT / ".venv-tools"
    if not (folder / "bin" / "pip").exists():
        venv.create(folder, with_pip=True)
    if not (path := folder / "bin" / name).exists():
        subprocess.run(
            [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", TOOLS[name]], check=True
        )
    return str(path)


COMMANDS = {"lock": lock, "sbom": sbom, "licences": licences, "audit": audit}

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    sys.exit(COMMANDS[sys.argv[1]]())
