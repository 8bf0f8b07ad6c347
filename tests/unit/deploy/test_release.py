"""What `make release` refuses, and what it writes. The whole of it, with environments and wheels, is in tests/acceptance."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.fleet import ROOT

sys.path.insert(0, str(ROOT / "packaging"))
import release
from release import NotReleasable

pytestmark = pytest.mark.processes
CHANGELOG = "# Changelog\n\n## 1.2.0 (unreleased)\n\n- new\n\n## 1.1.0 (2026-01-01)\n\n- old\n\n## 1.3.0 (unreleased)\n\n"


def git(root: Path, *arguments: str) -> str:
    named = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    return subprocess.run(["git", *named, *arguments], cwd=root, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with the files that have the version."""
    for name in release.PLACES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    git(tmp_path, "tag", "v1.1.0")
    return tmp_path


def test_a_tree_that_is_ready_is_released_from_and_others_are_refused_with_the_fix(tree: Path) -> None:
    release.check(tree, "1.2.0")
    for version, said in (
        ("1.2", "is not a version: write it as 0.2.0"),
        ("v1.2.0", "is not a version"),
        ("1.1.0", "is not after 1.1.0, which is released"),
        ("1.1.0rc1", "is not after 1.1.0"),
        ("1.4.0", "has no section `## 1.4.0"),
        ("1.3.0", "with text: write what users get"),
    ):
        with pytest.raises(NotReleasable, match=said):
            release.check(tree, version)
    git(tree, "tag", "--delete", "v1.1.0")
    with pytest.raises(NotReleasable, match="released on 2026-01-01"):
        release.check(tree, "1.1.0")
    (tree / "Dockerfile").write_text("other")
    with pytest.raises(NotReleasable, match="Dockerfile: commit them first"):
        release.check(tree, "1.2.0")


def test_the_copy_has_the_version_everywhere_and_the_tree_is_as_it_was(
    tree: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    before = git(tree, "rev-parse", "HEAD")
    git(tree, "config", "user.name", "Ann")
    git(tree, "config", "user.email", "ann@example.org")
    copy = tmp_path_factory.mktemp("release") / "copy"
    made = release.prepare(tree, copy, "1.2.0")
    assert (git(tree, "rev-parse", "HEAD"), git(tree, "status", "--porcelain")) == (before, "")
    assert git(copy, "log", "-1", "--format=%H %an %s") == f"{made} Ann release: 1.2.0"
    for name, pattern in release.PLACES.items():
        assert [found[1] for found in pattern.findall((copy / name).read_text())] == ["1.2.0"], name
    changelog = (copy / "CHANGELOG.md").read_text()
    assert changelog.count("(unreleased)") == 1, "the next version's section stays"
    assert release.notes(tree, "1.2.0") == "- new\n"
    (tree / "Dockerfile").write_text("no version")
    with pytest.raises(NotReleasable, match="Dockerfile has the version 0 times"):
        release.write_version(tree, "1.2.0", "2026-01-02")


def test_both_images_are_built_with_the_words_that_were_given_and_asked_for_their_version(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, calls = tmp_path / "bin/docker", tmp_path / "calls"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$*" >> {calls}\necho trawl 1.2.0\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    words = ["--build-arg", "PYTHON_IMAGE=python@sha256:1"]
    assert release.try_image(tree, "1.2.0", "abc", words) == "trawl:1.2.0 and trawl-exporter:1.2.0"
    _, build, run, second, asked = calls.read_text().splitlines()
    assert build.startswith("build --quiet --build-arg PYTHON_IMAGE=python@sha256:1 --build-arg VERSION=1.2.0")
    assert run == "run --rm trawl:1.2.0 trawl --version"
    assert second.endswith("--target exporter --tag trawl-exporter:1.2.0 .")
    assert asked.startswith("run --rm trawl-exporter:1.2.0 python -c")
    with pytest.raises(NotReleasable, match=r"the image trawl prints 'trawl 1.2.0', not 1.3.0"):
        release.try_image(tree, "1.3.0", "abc", [])


def test_this_repository_has_one_version(tmp_path: Path) -> None:
    found = {name: pattern.findall((ROOT / name).read_text()) for name, pattern in release.PLACES.items()}
    assert {version for matches in found.values() for _, version, _ in matches} == {release_version()}
    assert all(len(matches) == 1 for matches in found.values())
    assert f"\n## {release_version()} (" in (ROOT / "CHANGELOG.md").read_text(), "the changelog has a section of it"


def release_version() -> str:
    from redis_components import __version__

    return __version__
